const WIDTH = 120
const MIDDLE = 14
const HEIGHT = 28
const LEAST = 2

/** A small chart, a bar a minute: upwards what was received, downwards what was sent; and the sums in words. */
export function Spark({ received, sent }: { received: number[]; sent: number[] }) {
  const most = Math.max(1, ...received, ...sent)
  const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0)
  const text = `${sum(received)} received, ${sum(sent)} sent in the last ${received.length} minutes`
  const height = (number: number) => (number === 0 ? 0 : Math.max(LEAST, (number / most) * (MIDDLE - 1)))
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={text}>
      <title>{text}</title>
      <rect class="axis" x="0" y={MIDDLE - 0.5} width={WIDTH} height="1" />
      <path class="received" d={bars(received, (number) => -height(number))} />
      <path class="sent" d={bars(sent, height)} />
    </svg>
  )
}

/** All bars as one path; `height` is negative for upwards. */
function bars(numbers: number[], height: (number: number) => number): string {
  const step = WIDTH / numbers.length
  return numbers
    .map((number, index) =>
      number === 0
        ? ''
        : `M${(index * step).toFixed(1)} ${MIDDLE}h${(step - 1).toFixed(1)}v${height(number).toFixed(1)}h-${(step - 1).toFixed(1)}Z`,
    )
    .join('')
}
