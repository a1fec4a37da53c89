/** What the hub's administration answers, as far as the panel shows it. */

export interface LinkView {
  state: 'connecting' | 'connected' | 'throttled' | 'reconnecting' | 'needs_login' | 'misconfigured'
  reason: string
  since: string
  next_retry_at: string | null
  action: string | null
}

export interface ClientView {
  name: string
  label: string
  status: 'online' | 'offline'
  last_seen: string
  created_at: string
  queue_size: number
  default: boolean
  fallback: boolean
  /** A number a minute, the present one last. */
  received: number[]
  sent: number[]
}

export interface Overview {
  link: LinkView
  clients: ClientView[]
  total: number
  online: number
  dead_letters: number
}

export interface MessageView {
  id: number
  from_user: string
  received_at: string
  state: 'routed' | 'command' | 'unrouted' | 'suppressed' | 'quarantined'
  reason: string
  duplicate_of: number | null
  content: string | null
  msg_type: string | null
  deliveries: { client: string; state: string; failures: number }[]
}

export interface ConversationView {
  user: string
  last_at: string
  last_text: string | null
  client: string | null
  chosen: string | null
  reason: string
}

export interface LetterView {
  id: number
  client: string | null
  message_id: number
  reason: string
  from_user: string
  content: string | null
  msg_type: string | null
  created_at: string
}

export interface DryRun {
  state: string
  reason: string
  clients: (string | null)[]
  chooses: string | null
  text: string
  replies: string[]
}

/** A token that is told once. */
export interface Issued {
  name: string
  token: string
}

export interface AccountView extends LinkView {
  account: string
  bot_id: string | null
  user_id: string | null
}

/** A login by QR code that is under way, or how it ended. */
export interface LoginView {
  login_id: string
  account: string
  status: 'wait' | 'scanned' | 'need_verify_code' | 'confirmed' | 'expired' | 'failed' | 'cancelled'
  qr_text: string | null
  qr_svg: string | null
  message: string
}

export interface Upstream {
  accounts: AccountView[]
  logins: LoginView[]
}

/** A client that asks to be let in. */
export interface PairingView {
  id: string
  status: string
  from: string
  created_at: string
}
