import type { Requirements } from './requirement.ts'

/** Who may call what. */
export const auth = {
  'auth:virtual:header': {
    source: 'spec/relay-hub-api.md: Authentication',
    behaviour: 'A client endpoint lets in who sends `Authorization: Bearer` with a registered token.',
  },
  'auth:virtual:missing': {
    source: 'design/relay-decisions.md: error table, row 1',
    behaviour: 'A relay call without the header is a 401.',
  },
  'auth:virtual:malformed': {
    source: 'design/relay-decisions.md: error table, row 1',
    behaviour: 'A relay call whose header is no bearer token is a 401.',
  },
  'auth:virtual:unknown': {
    source: 'design/relay-decisions.md: error table, row 1',
    behaviour: 'A relay call with a token nobody has is a 401.',
  },
  'auth:virtual:revoked': {
    source: 'design/relay-decisions.md: error table, row 1',
    behaviour: 'A relay call with a revoked token is a 401.',
  },
  'auth:virtual:body-differs': {
    source: 'design/relay-decisions.md: error table, row 1',
    behaviour: "A body token that differs from the header's is a 401.",
  },
  'auth:virtual:body-alone': {
    source: 'spec/relay-hub-api.md: Authentication; design/relay-decisions.md: error table, row 1',
    behaviour: 'A token in the body does not stand in for the header.',
  },
  'auth:virtual:challenge': {
    source: 'design/relay-decisions.md: error table, row 1',
    behaviour: 'Every 401 on a relay path carries `WWW-Authenticate: Bearer`.',
  },
  'auth:virtual:before-body': {
    source: 'design/relay-decisions.md: Shapes, auth',
    behaviour: 'A bad token is refused before the body is parsed, whatever the body is.',
  },
  'auth:admin:required': {
    source: 'spec/relay-hub-api.md: Authentication; design/relay-decisions.md: Administration, admin token',
    behaviour: 'With RELAY_ADMIN_TOKEN set every path under /hub/ needs it as bearer, and is a 401 without.',
  },
  'auth:admin:accepted': {
    source: 'spec/relay-hub-api.md: Authentication',
    behaviour: 'With the right admin token in the header the administration endpoints answer.',
  },
  'auth:admin:sign-in-form': {
    source: 'design/relay-decisions.md: Administration, admin token',
    behaviour: 'Without the token /hub/ui is a 401 whose body is an HTML sign-in form.',
  },
  'auth:admin:cookie': {
    source: 'design/relay-decisions.md: Administration, admin token',
    behaviour: 'Signing in sets an HttpOnly, SameSite=Strict cookie.',
  },
  'auth:admin:cookie-counts': {
    source: 'design/relay-decisions.md: Administration, admin token',
    behaviour: 'The cookie counts as the header for the page and its calls.',
  },
  'auth:admin:cookie-origin': {
    source: 'design/relay-decisions.md: Administration, admin token',
    behaviour: 'A call by cookie from a foreign Origin is refused.',
  },
  'auth:admin:constant-time': {
    source: 'design/relay-decisions.md: Administration, admin token',
    behaviour: 'Admin tokens of any length are compared in constant time.',
  },
  'auth:admin:wrong-tries': {
    source: 'design/relay-decisions.md: Administration, admin token',
    behaviour: 'Many wrong tries in a row are answered with 429.',
  },
  'auth:admin:right-after-wrong': {
    source: 'design/relay-decisions.md: Administration, admin token',
    behaviour: 'The right token is let in however many wrong ones came before.',
  },
  'auth:open:loopback': {
    source: 'design/relay-decisions.md: Administration, open mode',
    behaviour: 'Without an admin token callers on this machine may use /hub/.',
  },
  'auth:open:remote': {
    source: 'design/relay-decisions.md: Administration, open mode',
    behaviour: 'Without an admin token a caller from elsewhere gets a 403 that says to set the token or --insecure.',
  },
  'auth:open:forwarded': {
    source: 'design/relay-decisions.md: Administration, open mode',
    behaviour: 'Without an admin token a loopback caller with a forwarding header counts as one from elsewhere.',
  },
  'auth:open:insecure': {
    source: 'design/relay-decisions.md: Administration, open mode',
    behaviour: 'With --insecure a caller from elsewhere is let in without a token.',
  },
  'auth:open:banner': {
    source: 'design/relay-decisions.md: Administration, open mode',
    behaviour: 'The hub starts on any address and its banner says who may use /hub/.',
  },
  'auth:open:host': {
    source: 'design/relay-decisions.md: Administration, open mode',
    behaviour: 'In open mode a Host that is neither localhost nor an IP literal is refused.',
  },
  'auth:open:allowed-host': {
    source: 'design/relay-decisions.md: Administration, open mode',
    behaviour: 'In open mode a Host named with --allowed-host is let in.',
  },
  'auth:open:origin': {
    source: 'design/relay-decisions.md: Administration, open mode',
    behaviour: 'In open mode a foreign Origin is refused.',
  },
  'auth:health:none': {
    source: 'design/relay-decisions.md: Administration, health',
    behaviour: '/health needs no token, also when an admin token is set.',
  },
  'auth:metrics:open': {
    source: 'design/relay-decisions.md: Administration, health',
    behaviour: '/metrics needs no token as long as none is set for it.',
  },
  'auth:metrics:token': {
    source: 'design/relay-decisions.md: Administration, health',
    behaviour: 'With RELAY_METRICS_TOKEN set /metrics is a 401 without that bearer.',
  },
} as const satisfies Requirements
