/**
 * Calls to the cloud in memory, as the EC2 adapter makes them: a number of ids per call, none after a throttled call.
 */
import type { CloudWorld } from './cloud-world.ts';
import type { CloudCalls, CloudFailure, PlannedFailures } from './planned-failures.ts';

/** Values that EC2 accepts in one filter. */
const IDS_PER_CALL = 200;

export interface CallOptions {
  readonly idsPerCall?: number;
  /** The failure of an earlier call of the pass: no call is made, and every id fails with it. */
  readonly throttled?: CloudFailure | undefined;
}

/** The answer about each id, or the failure of its call. */
export type CallEach = <Answer>(
  name: keyof CloudCalls,
  ids: readonly string[],
  answerFor: (id: string, momentMs: number) => Answer,
  options?: CallOptions,
) => Map<string, Answer | CloudFailure>;

/** @param answerDelayMs returns the current delay of answers */
export function cloudCalls(world: CloudWorld, failures: PlannedFailures, answerDelayMs: () => number): CallEach {
  return <Answer>(
    name: keyof CloudCalls,
    ids: readonly string[],
    answerFor: (id: string, momentMs: number) => Answer,
    { idsPerCall = IDS_PER_CALL, throttled }: CallOptions = {},
  ) => {
    const answers = new Map<string, Answer | CloudFailure>();
    const momentMs = world.nowMs - answerDelayMs();
    let throttle = throttled;
    for (let first = 0; first < ids.length; first += idsPerCall) {
      const failure = throttle ?? failures.call(name);
      if (failure?.cause === 'throttled') throttle = failure;
      for (const id of ids.slice(first, first + idsPerCall)) answers.set(id, failure ?? answerFor(id, momentMs));
    }
    return answers;
  };
}
