/**
 * L11: no mark, taint, lift, eviction or deletion, nor its time, depends on a clock or count of a machine. A run is
 * repeated with correct clocks. Both runs must make the same decisions at the same times, to the millisecond. Wrong
 * times use no random number, so the two runs differ in nothing else.
 *
 * Machines' errors are constant, drift or jump, in both directions, in each field of faults/lying-clocks.ts. One field
 * is limited: `lastHeartbeatTime` only moves forward, by less than a day in all. The API stores a status post in which
 * only these times moved forward in the row of the node, and any other post as a whole Node (docs/decisions/0008).
 * Where a clock jumps back, the decisions are the same, but the number of store calls is not. That would move the
 * simulated durations of all later calls. Runs without a twin have such clocks too; there L1, L2 and L7 compare with
 * true times.
 */
import { runSim } from '../run-sim.ts';
import type { Decision, SimOptions, SimResult } from '../sim-options.ts';
import { seconds } from './law.ts';

/** Lines of the timeline: decisions of both runs before the first that differs. */
const LINES_BEFORE = 12;

export interface TwinResult extends SimResult {
  readonly twin: {
    /** Pairs of decisions that were compared. */
    readonly compared: number;
    /** Those about a machine with a wrong clock, or a pod on it. */
    readonly ofWrongClocks: number;
  };
}

/** Runs with wrong clocks and again with correct ones. The result is that of the first run, with a failure of L11. */
export async function runWithTwin(options: SimOptions): Promise<TwinResult> {
  const [lying, honest]: [Decision[], Decision[]] = [[], []];
  const result = await runSim({ ...options, clocks: 'moving', onDecision: (decision) => lying.push(decision) });
  if (result.failure !== undefined) return { ...result, twin: { compared: 0, ofWrongClocks: 0 } };
  await runSim({ ...options, clocks: 'honest', onDecision: (decision) => honest.push(decision) });
  const length = Math.max(lying.length, honest.length);
  let at = 0;
  while (at < length && textOf(lying[at]) === textOf(honest[at])) at += 1;
  const ofWrongClocks = lying.slice(0, at).filter(({ isOfWrongClock }) => isOfWrongClock).length;
  const twin = { compared: Math.min(at + 1, length), ofWrongClocks };
  if (at === length) return { ...result, twin };
  const [lied, truthful] = [lying[at], honest[at]];
  const subjects = [lied, truthful].flatMap((decision) => (decision === undefined ? [] : [decision.subject]));
  return {
    ...result,
    twin,
    failure: {
      law: 'L11',
      seed: options.seed,
      step: 0,
      atMs: Math.min(lied?.atMs ?? Infinity, truthful?.atMs ?? Infinity),
      subjects,
      message: `with wrong clocks: ${textOf(lied)}; with correct clocks: ${textOf(truthful)}`,
      timeline: lying.slice(Math.max(0, at - LINES_BEFORE), at).map(textOf),
    },
  };
}

const textOf = (decision: Decision | undefined): string =>
  decision === undefined ? 'nothing' : `${seconds(decision.atMs)} ${decision.subject} ${decision.text}`;
