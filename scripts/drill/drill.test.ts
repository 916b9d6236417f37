import { cpSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readAssembly } from '../../aws-local/assembly/assembly.ts';
import { writePolicy } from '../../test/support/local.ts';
import { ROOT } from '../release/manifest.ts';
import { openAwsHome } from './aws-home.ts';
import { assemblyOf } from './build.ts';
import { type DrillOptions, isClean, type Phase, runDrill } from './drill.ts';
import type { Build, Home } from './home.ts';
import { faultsOf, phaseTable } from './phase-table.ts';
import { openServeHome } from './serve-home.ts';

const sources: Build = {
  name: 'sources',
  command: [process.execPath, join(ROOT, 'cli/bin/nodekeeper.mjs')],
  assembly: () => assemblyOf(ROOT),
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

/** Acknowledges changes of the writers' objects, and makes none. */
const FORGETFUL = `
import { handler as real } from './earlier.mjs';
const isForgotten = ({ rawPath = '', requestContext }) =>
  requestContext?.http?.method === 'PATCH' && rawPath.includes('/configmaps/writer-');
export const handler = (event, context) =>
  isForgotten(event)
    ? { statusCode: 200, headers: { 'content-type': 'application/json' }, body: '{}' }
    : real(event, context);
`;

async function forgetful(): Promise<Build> {
  const assembly = mkdtempSync(join(tmpdir(), 'nk-forgetful-'));
  onTestFinished(() => rmSync(assembly, { recursive: true, force: true }));
  cpSync(await sources.assembly(), assembly, { recursive: true });
  const { template, assetPath } = readAssembly(assembly);
  const code = Object.values(template.Resources)
    .filter(({ Type }) => Type === 'AWS::Lambda::Function')
    .map(({ Properties = {} }) => Properties)
    .filter((properties) => JSON.stringify(properties).includes('"POWERTOOLS_SERVICE_NAME":"api"'))
    .map((properties) => assetPath((properties['Code'] as { readonly S3Key: string }).S3Key) ?? '')[0]!;
  renameSync(join(code, 'index.mjs'), join(code, 'earlier.mjs'));
  writeFileSync(join(code, 'index.mjs'), FORGETFUL);
  return { ...sources, name: 'forgetful', assembly: () => Promise.resolve(assembly) };
}

describe('the upgrade drill on the emulation of AWS', { timeout: 240_000 }, () => {
  it('finds nothing with the same functions, and writes that new functions acknowledge and do not make', async () => {
    const builds = [sources, await forgetful()] as const;
    const [same, lost] = await phasesOf(await openAwsHome(builds, 200), builds, 0);
    expect(same).toMatchObject({ falseMarks: [], lostWrites: [], containers: 20, restartedContainers: 0 });
    expect(isClean(same!)).toBe(true);
    expect(lost).toMatchObject({ falseMarks: [], restartedContainers: 0 });
    expect(lost!.lostWrites).not.toEqual([]);
    expect(lost!.lostWrites.join()).not.toContain('leases');
    expect(isClean(lost!)).toBe(false);
  });
});
