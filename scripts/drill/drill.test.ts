import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { writePolicy } from '../../test/support/local.ts';
import { ROOT } from '../release/manifest.ts';
import { type DrillOptions, isClean, type Phase, runDrill } from './drill.ts';
import type { Build, Home } from './home.ts';
import { faultsOf, phaseTable } from './phase-table.ts';
import { openServeHome } from './serve-home.ts';

const sources: Build = {
  name: 'sources',
  command: [process.execPath, join(ROOT, 'cli/bin/nodekeeper.mjs')],
  assembly: () => Promise.reject(new Error('of one machine')),
};
const faulty: Build = {
  ...sources,
  name: 'faulty',
  command: [process.execPath, join(ROOT, 'test/fixtures/faulty-build.mjs')],
};
const GRACE_SECONDS = 10;
const POLICY = {
  nodeMonitorPeriodSeconds: 5,
  nodeMonitorGracePeriodSeconds: GRACE_SECONDS,
  beatIntervalSeconds: 2,
  leaseDurationSeconds: 6,
} as const;
const options = (settleSeconds: number): DrillOptions => ({ machines: 20, settleSeconds, waitSecondsMax: 60 });

async function phasesOf(home: Home, changes: readonly Build[], settleSeconds: number): Promise<readonly Phase[]> {
  const phases: Phase[] = [];
  try {
    await runDrill(home, changes, options(settleSeconds), (phase) => phases.push(phase));
  } finally {
    await home.stop();
  }
  return phases;
}

describe('the upgrade drill on one machine', { timeout: 240_000 }, () => {
  it('finds nothing when the build is replaced by the same one', async () => {
    const home = await openServeHome(sources, writePolicy(POLICY));
    const [phase, ...others] = await phasesOf(home, [sources], GRACE_SECONDS + 10);
    expect(others).toEqual([]);
    expect(phase).toMatchObject({ falseMarks: [], lostWrites: [], containers: 20, restartedContainers: 0 });
    expect(phase!.acknowledgedWrites).toBeGreaterThan(100);
    expect(phase!.silentSeconds).toBeGreaterThan(0);
    expect(isClean(phase!)).toBe(true);
  });

  it('finds the marked node, the lost write and the restarted container of a faulty build', async () => {
    const home = await openServeHome(sources, writePolicy(POLICY));
    const [phase] = await phasesOf(home, [faulty], 5);
    expect(phase).toMatchObject({
      falseMarks: ['edge-a-0'],
      lostWrites: ['/api/v1/namespaces/drill/configmaps/writer-0-1'],
      restartedContainers: 1,
    });
    expect(isClean(phase!)).toBe(false);
    expect(phaseTable([phase!])).toMatch(/one machine {2}faulty {2}\d+\.\d s {6}1 {12}1 of \d+ +1 of 20/);
    expect(faultsOf(phase!)).toEqual([
      'faulty: false marks: edge-a-0',
      'faulty: lost writes: /api/v1/namespaces/drill/configmaps/writer-0-1',
    ]);
  });
});
