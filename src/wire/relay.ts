import { Type } from 'typebox'

/** The bodies of the client endpoints, spec shape and real shape. Unknown fields are welcome everywhere. */

const Token = Type.Optional(Type.String({ description: "The client's virtual token; the header decides." }))

export const GetUpdatesBody = Type.Object({
  token: Token,
  /** Of any length: a client may come with the cursor of another service, and that is no mistake. */
  get_updates_buf: Type.Optional(Type.String({ description: 'The cursor of the last answer.' })),
})

export const SendTextBody = Type.Object({
  token: Token,
  context_token: Type.String({ minLength: 1, maxLength: 1024 }),
  content: Type.String({ minLength: 1 }),
  msg_type: Type.Optional(Type.String({ maxLength: 64, description: '`text` is the only one that is sent.' })),
})

export const SendMessageBody = Type.Object({
  token: Token,
  msg: Type.Object({
    to_user_id: Type.Optional(Type.String({ maxLength: 256 })),
    context_token: Type.Optional(Type.String({ maxLength: 1024 })),
    client_id: Type.Optional(Type.String({ maxLength: 256 })),
    item_list: Type.Array(
      Type.Object({
        type: Type.Integer(),
        text_item: Type.Optional(Type.Object({ text: Type.Optional(Type.String()) })),
      }),
      { minItems: 1, maxItems: 100 },
    ),
  }),
})

export const SendTypingBody = Type.Object({
  token: Token,
  context_token: Type.Optional(Type.String({ maxLength: 1024 })),
  ilink_user_id: Type.Optional(Type.String({ maxLength: 256 })),
  to_user_id: Type.Optional(Type.String({ maxLength: 256 })),
  typing_ticket: Type.Optional(Type.String({ maxLength: 4096 })),
  status: Type.Optional(Type.Integer({ minimum: 1, maximum: 2, description: '1 starts, 2 ends.' })),
})

/** getconfig, getuploadurl, notifystart, notifystop: any object, with the token in it or not. */
export const AnyBody = Type.Object({ token: Token })

/** What a poll answers, as far as our own clients read it. */
export const UpdatesAnswer = Type.Object({
  get_updates_buf: Type.String(),
  messages: Type.Array(
    Type.Object({
      context_token: Type.String(),
      from_user: Type.String(),
      content: Type.String(),
      msg_type: Type.String(),
      timestamp: Type.Number(),
    }),
  ),
  /** The same messages in the same order, as the messaging service gave them: anything may be in there. */
  msgs: Type.Array(Type.Unknown()),
})
