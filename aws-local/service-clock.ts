/**
 * The clock of AWS's own services. They are other hosts: a step of this machine's clock does not change it. By the
 * clock of the machine, a step forward would expire every message in a queue, and a step back would hide it.
 *
 * Milliseconds since the Unix epoch at the start of this process, and monotonic from then on.
 */
export const serviceNowMs = (): number => Math.floor(performance.timeOrigin + performance.now());
