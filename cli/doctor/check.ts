/** The checks of `nodekeeper doctor`: each measures one thing and returns what was found. */
import { CommandError } from '../command.ts';

export type Outcome = 'ok' | 'warn' | 'fail' | 'notApplicable';

export interface Finding {
  readonly outcome: Outcome;
  /** What was measured, or why the check does not apply. */
  readonly measured: string;
  /** What the user can do next. Absent where nothing is to be done. */
  readonly next?: string;
}

export interface CheckResult extends Finding {
  readonly check: string;
}

export interface Check {
  readonly name: string;
  /** @throws CommandError when it cannot be measured; the check then fails */
  run(): Promise<Finding>;
}

export const ok = (measured: string): Finding => ({ outcome: 'ok', measured });
export const warn = (measured: string, next: string): Finding => ({ outcome: 'warn', measured, next });
export const fail = (measured: string, next: string): Finding => ({ outcome: 'fail', measured, next });
export const notApplicable = (reason: string): Finding => ({ outcome: 'notApplicable', measured: reason });

/** Limit of one check. Each request has a shorter limit of its own. Milliseconds. */
const CHECK_TIMEOUT_MS = 60_000;

/** Runs the checks at the same time. The results are in the order of the checks. */
export const runChecks = (checks: readonly Check[]): Promise<CheckResult[]> =>
  Promise.all(checks.map(async (check) => ({ check: check.name, ...(await findingOf(check)) })));

async function findingOf(check: Check): Promise<Finding> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Finding>((resolve) => {
    const seconds = CHECK_TIMEOUT_MS / 1_000;
    timer = setTimeout(
      () => resolve(fail(`no result within ${seconds} s`, 'check the network of this machine, then run doctor again')),
      CHECK_TIMEOUT_MS,
    );
  });
  try {
    return await Promise.race([check.run(), late]);
  } catch (error) {
    if (error instanceof CommandError) return fail(error.message, error.next);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

const LABELS: Readonly<Record<Outcome, string>> = {
  ok: 'ok',
  warn: 'warn',
  fail: 'fail',
  notApplicable: 'not applicable',
};
const LABEL_WIDTH = 14;
const NAME_WIDTH = 20;

/** One line. */
export function lineOf({ check, outcome, measured, next }: CheckResult): string {
  const todo = next === undefined ? '' : `. Next: ${next}`;
  return `${LABELS[outcome].padEnd(LABEL_WIDTH)}  ${check.padEnd(NAME_WIDTH)}  ${measured}${todo}`;
}
