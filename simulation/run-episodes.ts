/**
 * Faults that are an action at a moment, not a share of calls that fail: restarts, steps of clocks, roll-outs of a
 * policy.
 */
import { FAULT_NAMES } from './faults/catalogue.ts';
import type { SimChecks } from './sim-checks.ts';
import { type SimSetup, START_MS, seededPolicy } from './sim-setup.ts';

/** Largest step of all clocks. Milliseconds. */
export const CLOCK_STEP_MAX_MS = 30_000;

export function runEpisodes(setup: SimSetup, checks: SimChecks): void {
  const shape = setup.random('episodes');
  logEpisodes(setup, checks);
  restartProcesses(setup, checks);
  stepClocks(setup, checks, shape);
  rollPolicies(setup, checks, shape);
}

function logEpisodes({ time, plan }: SimSetup, { log }: SimChecks): void {
  for (const name of FAULT_NAMES) {
    for (const { fromMs, untilMs } of plan.episodes(name)) {
      time.after(fromMs - START_MS, () => log.add('', `${name} begins`));
      time.after(untilMs - START_MS, () => log.add('', `${name} ends`));
    }
  }
}

function restartProcesses({ time, plan }: SimSetup, { state }: SimChecks): void {
  for (const { fromMs, untilMs } of plan.episodes('restart')) {
    for (const atMs of [fromMs, (fromMs + untilMs) / 2]) {
      time.after(atMs - START_MS, () => {
        plan.count('restart');
        state.functions!.restart();
        state.watchFunctions?.restart();
        state.hubFunctions?.restart();
      });
    }
  }
}

function stepClocks({ time, plan }: SimSetup, { state, log }: SimChecks, shape: () => number): void {
  for (const { fromMs } of plan.episodes('clockJump')) {
    time.after(fromMs - START_MS, () => {
      const functions = state.functions!;
      plan.count('clockJump');
      functions.stepOneClock();
      state.watchFunctions?.stepOneClock();
      state.hubFunctions?.stepOneClock();
      if (shape() < 0.5) return;
      const toMs = Math.round((2 * shape() - 1) * CLOCK_STEP_MAX_MS);
      state.clockSteps.push({ atMs: time.nowMs(), byMs: toMs - functions.clockAheadMs });
      functions.clockAheadMs = toMs;
      if (state.watchFunctions !== undefined) state.watchFunctions.clockAheadMs = toMs;
      if (state.hubFunctions !== undefined) state.hubFunctions.clockAheadMs = toMs;
      log.add('', `all clocks are ${toMs} ms ahead`);
    });
  }
}

function rollPolicies(setup: SimSetup, { state, log, versions }: SimChecks, shape: () => number): void {
  const { time, plan, policy, options } = setup;
  for (const { fromMs, untilMs } of plan.episodes('policyRoll')) {
    time.after(fromMs - START_MS, () => {
      const functions = state.functions!;
      plan.count('policyRoll');
      versions.replace(functions.policy, untilMs);
      // The schedule keeps its period. Everything else of the policy may change.
      const { nodeMonitorPeriodSeconds: _, ...next } = seededPolicy(shape);
      functions.policy = versions.asPlanted({
        ...policy,
        ...next,
        ...options.policy,
        nodeMonitorPeriodSeconds: policy.nodeMonitorPeriodSeconds,
        nodeMonitorGracePeriodSeconds: policy.nodeMonitorGracePeriodSeconds + 10 * Math.floor(shape() * 3),
      });
      if (state.hubFunctions !== undefined) state.hubFunctions.policy = functions.policy;
      log.add('', 'a new policy is deployed');
    });
    time.after(untilMs - START_MS, () => {
      state.functions!.restart();
      state.hubFunctions?.restart();
      versions.finishRoll();
    });
  }
}
