import type { Requirements } from './requirement.ts'

const LOGIN = 'issue 4: Build 2, upstream for real'

/** Bot accounts: their logins, what is kept of them, and who gets what. */
export const accounts = {
  'login:http:start-without': {
    source: LOGIN,
    behaviour: 'Without a token the hub starts, serves HTTP, and says that and how somebody must log in.',
  },
  'login:http:shape': {
    source: LOGIN,
    behaviour: 'POST /hub/upstream/login gives a QR code as text and picture; GET shows how it stands; one at a time.',
  },
  'login:http:confirmed': {
    source: LOGIN,
    behaviour: 'A code that was scanned and confirmed logs the account in, and messages go both ways at once.',
  },
  'login:http:verify-code': {
    source: LOGIN,
    behaviour: 'When the phone shows a number the login asks for it, and again when it was wrong.',
  },
  'login:http:refresh': {
    source: LOGIN,
    behaviour: 'An expired code is replaced by itself, three codes in all; then the login says that it is over.',
  },
  'login:http:redirect': {
    source: LOGIN,
    behaviour: 'A redirect during the login and the address it ends with are followed.',
  },
  'login:http:untrusted-host': {
    source: LOGIN,
    behaviour: "A host outside the service's own domain is not followed; the login fails and says which one it was.",
  },
  'login:http:cancel': {
    source: LOGIN,
    behaviour: 'A login can be cancelled; a scan after that changes nothing.',
  },
  'login:http:relogin': {
    source: 'issue 4: What must show, -14',
    behaviour:
      'After an expired login a new one by QR brings the account back while clients wait, and nothing is lost.',
  },
  'accounts:routing:bound': {
    source: 'issue 4: Build 2, several accounts',
    behaviour: "A client that is bound to an account gets that account's messages only; one that is not gets them all.",
  },
  'accounts:send:right-account': {
    source: 'issue 4: What must show, two accounts',
    behaviour: 'A reply leaves from the account that its message came to.',
  },
  'accounts:send:ambiguous-user': {
    source: 'design/relay-decisions.md: never a guess at the recipient',
    behaviour: 'A user who is known in several accounts cannot be written to by id alone; the refusal says what helps.',
  },
  'accounts:clients:binding': {
    source: 'issue 4: Build 2, several accounts',
    behaviour: 'A client is bound at registration or later, to an account that is there or to all.',
  },
  'accounts:health:all-up': {
    source: 'issue 4: Build 2, several accounts',
    behaviour: '/health is ok when every account is connected; else it speaks of the one that is worst off.',
  },
  'accounts:logout:queue-stays': {
    source: 'issue 4: Build 2, several accounts',
    behaviour: 'Logging an account out leaves what waits in the queues, and the others alone.',
  },
  'accounts:property:none-misdirected': {
    source: 'issue 4: What must show, two accounts',
    behaviour: 'Two accounts, three clients, 10,000 exchanges at once: none is misdirected.',
  },
  'login:cli:terminal': {
    source: LOGIN,
    behaviour: 'switchboard login draws the code, waits for the phone, and the login outlives a restart of the hub.',
  },
  'credentials:rest:encrypted': {
    source: 'design/relay-decisions.md: Upstream, bot credentials',
    behaviour: 'Nothing of a login can be read in the data directory.',
  },
  'credentials:key:own': {
    source: 'design/relay-decisions.md: Upstream, bot credentials',
    behaviour: 'The hub makes its key itself (0600), and never a second one while something is encrypted.',
  },
  'credentials:key:given': {
    source: 'design/relay-decisions.md: Upstream, bot credentials',
    behaviour: 'A key may be given as a file or a value.',
  },
  'credentials:key:wrong': {
    source: 'issue 4: Build 2, credentials encrypted at rest',
    behaviour: 'With a wrong key there is a clear error that says what to do, and nothing is changed.',
  },
  'register:for:formats': {
    source: 'issue 4: Build 6, registration output',
    behaviour: 'For each known client there is the account file or environment it reads, with address and token.',
  },
} as const satisfies Requirements
