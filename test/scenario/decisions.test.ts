/**
 * Every record that the shipped stories leave says the same when its rule is run again. The stories hold in memory:
 * shipped.test.ts runs them on the other stores.
 */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { replay } from '../../cli/replay.ts';
import { DECISION_ACTS, type DecisionAct } from '../../shared/decisions/decision-record.ts';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import { parseScenario } from '../../simulation/parse-scenario.ts';
import { recordedMemoryStore } from '../../simulation/recorded-store.ts';
import { runScenario } from '../../simulation/run-scenario.ts';

const folder = fileURLToPath(new URL('../../scenarios/', import.meta.url));
const files = globSync('*.yaml', { cwd: folder }).sort();
const acts = new Set<DecisionAct>();

describe('the decisions of the shipped scenarios', () => {
  it.each(files)('%s: each replays to the same, under a valid name', async (file) => {
    const parsed = parseScenario(readFileSync(`${folder}${file}`, 'utf8'), file);
    if (parsed.kind !== 'ok') throw new Error(file);
    const store = recordedMemoryStore();
    const { endMs, failures } = await runScenario(parsed.scenario, { store, seed: 1 });
    expect(failures).toEqual([]);
    const nowMs = parsed.scenario.startMs + endMs;
    const { decisions } = await decisionStore(store.record).list({ nowMs, limit: 100_000 });
    expect(decisions.length).toBeGreaterThan(0);
    const unlike = decisions.filter(({ record }) => !replay(record).same);
    expect(unlike.map(({ name, record }) => ({ name, record, replay: replay(record) }))).toEqual([]);
    for (const { name, record } of decisions) {
      acts.add(record.act);
      expect(name).toMatch(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/);
    }
  });

  it('know most of what can be decided', () => {
    const others = [
      'Collected',
      'CronJobSkipped',
      'CronJobStarted',
      'JobExpired',
      'JobFinished',
      'NotWritten',
      'OutOfServiceRemoved',
      'PodEvictionHeld',
      'PodGivenUp',
      'PodLeftToSite',
      'PodMoveMerged',
      'PodMoveRefused',
      'PodMoved',
      'RequestsRefused',
      'ShutdownTaintRemoved',
      'VolumeDetached',
      'VolumeKept',
    ];
    expect([...acts].sort()).toEqual(DECISION_ACTS.filter((act) => !others.includes(act)).toSorted());
  });
});
