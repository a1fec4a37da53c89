import fc from 'fast-check'
import { expect } from 'vitest'
import { rawElements, rawMember, withoutMembers } from '../../src/kit/lossless-json.ts'
import { onlineClient } from '../support/relay-calls.ts'
import { startTestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

verifies('wire:fields:inbound', async () => {
  const hub = await startTestHub()
  const token = await onlineClient(hub, 'bot')
  const source =
    '{"seq":1,"message_id":7497484083968569737,"from_user_id":"ann@im.wechat","to_user_id":"b","create_time_ms":1700000000000,' +
    '"message_type":1,"message_state":2,"context_token":"theirs","new_top":{"a":[9007199254740993,1.50,-0]},"session_id":"s",' +
    '"item_list":[{"type":1,"msg_id":"7","new_item":18446744073709551615,"text_item":{"text":"hi","new_text":{"b":1e3}},' +
    '"ref_msg":{"title":"t","svr_id":7497484083968569739,"new_ref":1,"partial_text":{"start":"x","new":[{}]},' +
    '"message_item":{"type":2,"image_item":{"media":{"encrypt_query_param":"p","full_url":"https://x/y","new_media":"\\u0041"}}}}},' +
    '{"type":99,"unknown_item":{"deep":{"deeper":{"id":9223372036854775807}}}}]}'
  await hub.say('ann', '', { raw: source, replace: true })
  const { text } = await hub.poll(token)
  const [shown = ''] = rawElements(rawMember(text, 'msgs') ?? '[]')
  const ours = new Set(['context_token', 'message_id'])
  expect(withoutMembers(shown, ours)).toBe(withoutMembers(source, ours))
  expect(rawMember(shown, 'message_id')).toBe('7497484083968569737')
  expect(rawMember(shown, 'context_token')).toMatch(/^"ctx_/)
})

verifies(
  'wire:fields:fuzz',
  async () => {
    const hub = await startTestHub()
    const token = await onlineClient(hub, 'bot')
    let turn = 0
    await fc.assert(
      fc.asyncProperty(fc.array(oddMessage(), { minLength: 1, maxLength: 5 }), async (odd) => {
        turn += 1
        const marks = [`first ${turn}`, `last ${turn}`]
        hub.sim.control.sayAll([
          { user: 'ann', text: marks[0] ?? '' },
          ...odd.map((message) => ({ user: 'bob', raw: JSON.stringify(message), replace: true })),
          { user: 'ann', text: marks[1] ?? '' },
        ])
        const got: string[] = []
        await until(async () => {
          const { status, body } = await hub.poll(token)
          expect(status).toBe(200)
          for (const { from_user, content } of body.messages) if (from_user === 'ann@im.wechat') got.push(content)
          for (const { message_id: id } of body.msgs) expect(typeof id).toBe('number')
          return got.length >= 2
        })
        expect(got).toEqual(marks)
      }),
      { numRuns: 60 },
    )
    expect(hub.hub.link.isUp()).toBe(true)
  },
  60_000,
)

/** A message of the protocol with fields left out, put in, or of another kind. */
function oddMessage(): fc.Arbitrary<Record<string, unknown>> {
  const anything = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom(null, '', 0, -1, 2 ** 53, 1e300, [], {}, [[]], 'x'.repeat(300)),
  )
  const maybe = (good: fc.Arbitrary<unknown>) =>
    fc.oneof({ weight: 3, arbitrary: good }, { weight: 1, arbitrary: anything })
  const media = fc.record(
    { encrypt_query_param: maybe(fc.string()), aes_key: maybe(fc.string()), full_url: maybe(fc.webUrl()) },
    { requiredKeys: [] },
  )
  const item = fc.record(
    {
      type: maybe(fc.constantFrom(1, 2, 3, 4, 5, 11, 12, 99)),
      text_item: maybe(fc.record({ text: maybe(fc.string()) }, { requiredKeys: [] })),
      image_item: maybe(fc.record({ media: maybe(media), aeskey: maybe(fc.string()) }, { requiredKeys: [] })),
      voice_item: maybe(fc.record({ text: maybe(fc.string()) }, { requiredKeys: [] })),
      file_item: maybe(fc.record({ file_name: maybe(fc.string()), len: maybe(fc.string()) }, { requiredKeys: [] })),
      ref_msg: maybe(fc.record({ svr_id: maybe(fc.nat()), message_item: anything }, { requiredKeys: [] })),
      extra: anything,
    },
    { requiredKeys: [] },
  )
  return fc.record(
    {
      seq: maybe(fc.nat()),
      message_id: maybe(fc.nat()),
      from_user_id: maybe(fc.constantFrom('bob@im.wechat', 'eve@im.wechat')),
      create_time_ms: maybe(fc.nat()),
      message_type: maybe(fc.constantFrom(0, 1, 2)),
      context_token: maybe(fc.string()),
      item_list: maybe(fc.array(maybe(item), { maxLength: 3 })),
      extra: anything,
    },
    { requiredKeys: [] },
  )
}
