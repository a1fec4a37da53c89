import { expectOwnEvents } from '../support/queued-events.ts'
import { freshBucket } from '../support/servers/fresh-bucket.ts'
import { verifies } from '../support/verifies.ts'

verifies(
  ['agent:run:events-url', 'agent:events:of-run'],
  'events_url of a run that waits shows that run alone (a bucket)',
  async () => expectOwnEvents({ s3Url: await freshBucket() }),
  120_000,
)
