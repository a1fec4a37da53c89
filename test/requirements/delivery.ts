import type { Requirements } from './requirement.ts'

/** Delivery: nothing lost. */
export const delivery = {
  'delivery:state:path': {
    source: 'design/relay-decisions.md: Delivery, states',
    behaviour: 'A delivery goes from queued over sent to acked, and shows each on the way.',
  },
  'delivery:state:queued-durable': {
    source: 'design/relay-decisions.md: Delivery, states',
    behaviour: 'A message is durably queued before anybody hears of it.',
  },
  'delivery:state:restart': {
    source: 'design/relay-decisions.md: Delivery, states',
    behaviour: 'After a restart whatever is not known as sent is queued.',
  },
  'delivery:commit:atomic': {
    source: 'design/relay-decisions.md: Delivery 1',
    behaviour: 'Messages, deliveries and the new cursor of a batch are kept together or not at all.',
  },
  'delivery:commit:before-poll': {
    source: 'design/relay-decisions.md: Delivery 1',
    behaviour: 'The next upstream poll starts only after the batch is durable.',
  },
  'delivery:inbox:kept-first': {
    source: 'design/relay-decisions.md: Delivery 1, as changed by decision 0033',
    behaviour:
      'An answer with a backlog behind it is durable as it came before the next is asked for, and stored meanwhile.',
  },
  'delivery:inbox:bounded': {
    source: 'design/relay-decisions.md: Delivery 1, as changed by decision 0033',
    behaviour: 'No more answers are asked for than can be kept until they are stored.',
  },
  'delivery:inbox:recovered': {
    source: 'design/relay-decisions.md: Delivery 1, as changed by decision 0033',
    behaviour:
      'What was kept and not stored when the hub died is stored at its next start, once, before the service is asked.',
  },
  'delivery:commit:before-wake': {
    source: 'design/relay-decisions.md: Delivery 1',
    behaviour: 'No waiting poll is woken before the batch is durable.',
  },
  'delivery:commit:retried': {
    source: 'design/relay-decisions.md: Delivery 1',
    behaviour: 'When the commit fails the batch is kept and committed again, and the upstream is not polled meanwhile.',
  },
  'delivery:duplicates:same-id': {
    source: 'design/relay-decisions.md: Delivery 2',
    behaviour: 'An upstream id seen within 30 days is not delivered again.',
  },
  'delivery:duplicates:same-message': {
    source: 'design/relay-decisions.md: Delivery 2',
    behaviour: 'Another id with the same user, content, create_time_ms and seq is not delivered again.',
  },
  'delivery:duplicates:incomplete': {
    source: 'design/relay-decisions.md: Delivery 2',
    behaviour: 'Without create_time_ms or seq two messages with other ids are never taken for one.',
  },
  'delivery:duplicates:visible': {
    source: 'design/relay-decisions.md: Delivery 2',
    behaviour: 'A suppressed duplicate is stored, listed and counted.',
  },
  'delivery:cursor:acks': {
    source: 'design/relay-decisions.md: Delivery 3',
    behaviour: 'A cursor of this hub acknowledges all up to it, and the answer holds what comes after.',
  },
  'delivery:cursor:same-again': {
    source: 'design/relay-decisions.md: Delivery 3',
    behaviour: 'The same cursor again gets the same messages, and any that have come since.',
  },
  'delivery:cursor:older': {
    source: 'design/relay-decisions.md: Delivery 3',
    behaviour: 'An older cursor replays what came after it within 24 hours.',
  },
  'delivery:cursor:fifth-alone': {
    source: 'design/relay-decisions.md: Delivery 3',
    behaviour: "A message's fifth delivery comes alone.",
  },
  'delivery:cursor:eighth-dead': {
    source: 'design/relay-decisions.md: Delivery 3',
    behaviour: 'Instead of an eighth delivery a message becomes a dead letter.',
  },
  'delivery:cursor:hasty': {
    source: 'design/relay-decisions.md: Delivery 3',
    behaviour: 'The same cursor again within half a second gets one message only.',
  },
  'delivery:cursor:foreign': {
    source: 'design/relay-decisions.md: Delivery 3',
    behaviour: 'A foreign or broken cursor acknowledges nothing and is no error.',
  },
  'delivery:cursor:lost': {
    source: 'design/relay-decisions.md: Delivery 3',
    behaviour: 'An empty cursor from a client that echoed cursors before acknowledges nothing.',
  },
  'delivery:cursor:never-echoed': {
    source: 'design/relay-decisions.md: Delivery 3',
    behaviour: 'An empty cursor from a client that never echoed one counts as no cursor.',
  },
  'delivery:implicit:acks': {
    source: 'design/relay-decisions.md: Delivery 4',
    behaviour: 'A poll without a cursor acknowledges the batch before it.',
  },
  'delivery:implicit:unfinished': {
    source: 'design/relay-decisions.md: Delivery 4',
    behaviour: 'A batch whose writing did not finish comes again.',
  },
  'delivery:implicit:reset': {
    source: 'design/relay-decisions.md: Delivery 4',
    behaviour: 'A batch whose socket was reset before the next poll comes again.',
  },
  'delivery:implicit:restart': {
    source: 'design/relay-decisions.md: Delivery 4',
    behaviour: 'A batch not known as sent when the hub restarted comes again.',
  },
  'delivery:implicit:first': {
    source: 'design/relay-decisions.md: Delivery 4',
    behaviour: 'What comes again comes before what is new.',
  },
  'delivery:implicit:other-connection': {
    source: 'design/relay-decisions.md: Delivery 4',
    behaviour: 'A next poll over another connection is no sign of loss.',
  },
  'delivery:implicit:unread': {
    source: 'design/relay-decisions.md: Delivery 4',
    behaviour: 'A client that died with its answer unread gets it again although the response had finished.',
  },
  'delivery:implicit:assumed': {
    source: 'design/relay-decisions.md: Delivery 4',
    behaviour: 'What counts as received only for want of evidence is marked acked_assumed.',
  },
  'delivery:implicit:assumed-replay': {
    source: 'design/relay-decisions.md: Delivery 4',
    behaviour: 'What is marked acked_assumed can be replayed for 24 hours.',
  },
  'delivery:use:acks-batch': {
    source: 'design/relay-decisions.md: Delivery 4',
    behaviour: "A send with a message's own context token acknowledges that message's batch.",
  },
  'delivery:use:keeps-cursor': {
    source: 'design/relay-decisions.md: Delivery 4',
    behaviour: 'A send with a context token does not move an explicit cursor.',
  },
  'delivery:timer:none': {
    source: 'design/relay-decisions.md: Delivery 5',
    behaviour: 'Nothing is delivered again merely because time has passed.',
  },
  'delivery:poll:newest-wins': {
    source: 'design/relay-decisions.md: Delivery 6',
    behaviour: 'Of two polls with one token the newer one stays and is answered without delay.',
  },
  'delivery:poll:closed-socket': {
    source: 'design/relay-decisions.md: Delivery 6',
    behaviour: 'A poll whose socket has closed is no conflict for the next one.',
  },
  'delivery:poll:none-to-older': {
    source: 'design/relay-decisions.md: Delivery 6',
    behaviour: 'Nothing is handed to a poll that a newer one has displaced, and no message goes to both.',
  },
  'delivery:batch:messages': {
    source: 'design/relay-decisions.md: Delivery 7',
    behaviour: 'An answer holds at most 100 messages.',
  },
  'delivery:batch:bytes': {
    source: 'design/relay-decisions.md: Delivery 7',
    behaviour: 'An answer holds at most 1 MiB of messages, but always one if there is one.',
  },
  'delivery:batch:order': {
    source: 'design/relay-decisions.md: Delivery 7',
    behaviour: 'Messages come oldest first, and those of a conversation in their order.',
  },
  'delivery:batch:no-gathering': {
    source: 'design/relay-decisions.md: Delivery 7',
    behaviour: 'A waiting poll is answered with what one commit brought, without waiting for more.',
  },
  'delivery:hold:exact': {
    source: 'design/relay-decisions.md: Delivery 8',
    behaviour: 'The hold is 30.0 seconds, neither cut short nor overrun noticeably.',
  },
  'delivery:hold:hang-up': {
    source: 'design/relay-decisions.md: Delivery 8',
    behaviour: 'A client that hangs up is noticed, and what comes then stays queued for its next poll.',
  },
  'delivery:hold:body-read': {
    source: 'design/relay-decisions.md: Delivery 8',
    behaviour: 'A poll does not end because its request body was read.',
  },
  'delivery:bounds:messages': {
    source: 'design/relay-decisions.md: Delivery 9',
    behaviour: 'A queue keeps 10,000 messages; past that the oldest become dead letters.',
  },
  'delivery:bounds:bytes': {
    source: 'design/relay-decisions.md: Delivery 9',
    behaviour: 'A queue keeps 64 MiB; past that the oldest become dead letters.',
  },
  'delivery:bounds:age': {
    source: 'design/relay-decisions.md: Delivery 9',
    behaviour: 'A message that waited 24 hours becomes a dead letter.',
  },
  'delivery:bounds:reason': {
    source: 'design/relay-decisions.md: Delivery 9',
    behaviour: 'A dead letter keeps the reason why it left its queue.',
  },
  'delivery:bounds:counted': {
    source: 'design/relay-decisions.md: Delivery 9',
    behaviour: 'What passes a bound is counted in the metrics.',
  },
  'delivery:bounds:user-told': {
    source: 'design/relay-decisions.md: Delivery 9',
    behaviour: 'The user is told of a lost place in the queue, at most once in 10 minutes.',
  },
  'delivery:shutdown:polls': {
    source: 'design/relay-decisions.md: Delivery 10',
    behaviour: 'At shutdown waiting polls are answered empty, with `Connection: close`.',
  },
  'delivery:shutdown:writes': {
    source: 'design/relay-decisions.md: Delivery 10',
    behaviour: 'At shutdown running writes finish before the store closes.',
  },
  'delivery:shutdown:quick': {
    source: 'design/relay-decisions.md: Delivery 10',
    behaviour: 'A shutdown takes at most 10 seconds.',
  },
  'delivery:crash:nothing-lost': {
    source: 'issue 2: What must show, kill -9',
    behaviour:
      'Killed at any moment and restarted, the hub delivers every message at least once, and twice only what was in flight.',
  },
} as const satisfies Requirements
