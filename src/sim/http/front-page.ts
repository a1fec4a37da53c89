/** What somebody reads who opens the sim in a browser or asks it with curl. */
export function frontPage(host = 'localhost'): string {
  const at = `http://${host}`
  return `This is the sim: a stand-in for the messaging service. It speaks the bot protocol under /ilink/bot/ and /c2c/,
keeps everything in memory, and does what you tell it under /sim/.

Say something to the bot as ann (an id with an @ is taken as it is):
  curl ${at}/sim/say -d '{"user":"ann","text":"hello"}'
Say many things at once, quote a message, send an image, a file, a voice message:
  curl ${at}/sim/say -d '{"messages":[{"user":"ann","text":"one"},{"user":"bob","text":"two"}]}'
  curl ${at}/sim/say -d '{"user":"ann","text":"this one","quote":"MESSAGE_ID"}'
  curl ${at}/sim/say -d '{"user":"ann","image_base64":"aGVsbG8="}'
  curl ${at}/sim/say -d '{"user":"ann","file_base64":"aGVsbG8=","file_name":"a.txt"}'
  curl ${at}/sim/say -d '{"user":"ann","voice_text":"spoken"}'
Say something odd: raw goes over the made members; with "replace":true it is the whole message:
  curl ${at}/sim/say -d '{"user":"ann","text":"x","raw":{"new_field":9007199254740993}}'

Read what ann and the bot have said; wait for news after message 3:
  curl '${at}/sim/conversation?user=ann'
  curl '${at}/sim/conversation?user=ann&after=3&wait_ms=30000'
Fetch the decrypted media of a message:
  curl '${at}/sim/media?user=ann&message_id=MESSAGE_ID' -o file
Look around:
  curl ${at}/sim/users
  curl ${at}/sim/state

Make things go wrong. All kinds take "count", "for_ms" and "bot", and last until cleared when neither limit is given:
  curl ${at}/sim/fault -d '{"kind":"down","for_ms":5000}'            connections break ("only":"sendmessage" for one call)
  curl ${at}/sim/fault -d '{"kind":"expired"}'                       -14 until cleared or a QR login
  curl ${at}/sim/fault -d '{"kind":"throttle","count":1}'            sendmessage: -2 "rate limited"
  curl ${at}/sim/fault -d '{"kind":"refuse_send","ret":-3}'          sendmessage: this ret ("errmsg" too)
  curl ${at}/sim/fault -d '{"kind":"unconfirmed","count":1}'         sendmessage: 0, no message_id, never shown
  curl ${at}/sim/fault -d '{"kind":"duplicate","count":1}'           said once, delivered twice ("fresh_id":true: another id)
  curl ${at}/sim/fault -d '{"kind":"malformed"}'                     once; "shape": not_an_object, no_sender, bad_items
  curl ${at}/sim/fault -d '{"kind":"bad_json","count":1}'            getupdates is cut in half
  curl ${at}/sim/fault -d '{"kind":"slow","delay_ms":2000}'          answers come late ("only" too)
  curl ${at}/sim/fault -d '{"kind":"http_error","status":502}'       this status ("only" too)
  curl ${at}/sim/fault
  curl -X DELETE ${at}/sim/fault

Be the phone that scans a bot's QR code ("as": whose phone, "bot": which account, "verify_code": code to be repeated,
"confirm":false: only scan, "redirect_host": where the login goes on, "already_bound":true: there is a bot already):
  curl ${at}/sim/qr
  curl ${at}/sim/qr/scan -d '{"qrcode":"QRCODE"}'
Make another bot account; its token comes back:
  curl ${at}/sim/bots -d '{"name":"second"}'
`
}
