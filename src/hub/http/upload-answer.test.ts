import { expect, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { readUploadAnswer } from './upload-answer.ts'

const PLACE = { cdnUrl: 'https://cdn.example/c2c', filekey: 'f' }
const FULL = 'https://cdn.example/c2c/upload?encrypted_query_param=a%2Bb%3D&filekey=f'

verifies(
  'relay:getuploadurl:both-forms',
  'the short form is taken from the long one where the service left it out',
  () => {
    for (const rest of ['', ',"upload_param":""', ',"upload_param":null']) {
      expect(JSON.parse(readUploadAnswer(`{"ret":0,"upload_full_url":"${FULL}"${rest}}`, PLACE))).toEqual({
        upload_full_url: FULL,
        upload_param: 'a+b=',
      })
    }
  },
)

verifies('relay:getuploadurl:forwards', 'what the service said passes to the letter, but for its status fields', () => {
  const answer = ` {"ret":0,"upload_param":"p\\u0041", "upload_full_url":"${FULL}","errcode":0,"x":7497484083968569736,"errmsg":""} `
  expect(readUploadAnswer(answer, PLACE)).toBe(
    `{"upload_param":"p\\u0041","upload_full_url":"${FULL}","x":7497484083968569736}`,
  )
})

test('a plus in the long form is a plus', () => {
  const answer = '{"upload_full_url":"https://cdn.example/upload?filekey=f&encrypted_query_param=a+b/=#x"}'
  expect(JSON.parse(readUploadAnswer(answer, PLACE))).toMatchObject({ upload_param: 'a+b/=' })
})

test('an address that hides no short form is left alone', () => {
  for (const url of ['not a url', 'https://cdn.example/upload', '', 'https://x/?encrypted_query_param=%zz']) {
    const answer = JSON.stringify({ upload_full_url: url })
    expect(readUploadAnswer(answer, PLACE)).toBe(answer)
  }
  for (const answer of ['{}', '{"upload_full_url":5}', '{"upload_full_url":null}'])
    expect(readUploadAnswer(answer, PLACE)).toBe(answer)
})

verifies('relay:getuploadurl:both-forms', 'the long form is made where the service gave only the short one', () => {
  const body = '{"upload_param":"a+b=","upload_full_url":""}'
  expect(JSON.parse(readUploadAnswer(body, PLACE))).toEqual({ upload_param: 'a+b=', upload_full_url: FULL })
  expect(JSON.parse(readUploadAnswer('{"upload_param":"p"}', { ...PLACE, filekey: null })).upload_full_url).toBe(
    'https://cdn.example/c2c/upload?encrypted_query_param=p',
  )
})
