/**
 * L11: no mark, taint, lift, eviction or deletion, nor its time, rests on a clock or a count that a machine supplied. A run and
 * the same run with honest clocks must decide the same things at the same times: lies ask for no random number, so the two
 * worlds differ in nothing else. Each error stands still here: a post whose times go back costs other calls, and with them moves
 * what comes after.
 */
import { runSim } from '../run-sim.ts';
import type { Decision, SimOptions, SimResult } from '../sim-options.ts';
import { seconds } from './law.ts';

/** Lines of the timeline: decisions of both runs before the first that differs. */
const LINES_BEFORE = 12;

/** The run with lies; its failure is L11 when honest clocks would have changed what was decided. */
export async function runWithTwin(options: SimOptions): Promise<SimResult> {
  const [lying, honest]: [Decision[], Decision[]] = [[], []];
  const result = await runSim({ ...options, clocks: 'steady', onDecision: (decision) => lying.push(decision) });
  if (result.failure !== undefined) return result;
  await runSim({ ...options, clocks: 'honest', onDecision: (decision) => honest.push(decision) });
  const index = lying.findIndex((decision, at) => textOf(decision) !== textOf(honest[at]));
  const at = index >= 0 ? index : lying.length;
  if (at === honest.length && index < 0) return result;
  const [lied, truthful] = [lying[at], honest[at]];
  const subjects = [lied, truthful].flatMap((decision) => (decision === undefined ? [] : [decision.subject]));
  return {
    ...result,
    failure: {
      law: 'L11',
      seed: options.seed,
      step: 0,
      atMs: Math.min(lied?.atMs ?? Infinity, truthful?.atMs ?? Infinity),
      subjects,
      message: `with clocks that lie: ${textOf(lied)}; with honest ones: ${textOf(truthful)}`,
      timeline: lying.slice(Math.max(0, at - LINES_BEFORE), at).map(textOf),
    },
  };
}

const textOf = (decision: Decision | undefined): string =>
  decision === undefined ? 'nothing' : `${seconds(decision.atMs)} ${decision.subject} ${decision.text}`;
