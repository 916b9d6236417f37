/**
 * The agent under a real systemd with a real logind and D-Bus, booted in namespaces of its own (boot.sh): installed by
 * install.sh, killed, updated, and shut down with its machine.
 */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Finding } from '../../agent/rules/finding.ts';
import { buildAgent } from '../../scripts/build-agent.ts';
import { KUBERNETES_VERSION } from '../../shared/kinds/generated/version.ts';
import { BOOT_MS, boot, missing, resultsOf, why } from './boot.ts';

describe.skipIf(missing !== undefined)(`the agent under systemd${why}`, () => {
  let directory: string;
  const read = <T>(step: string): T => resultsOf<T>(directory, step);

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'nodekeeper-systemd-'));
    copyFileSync(await buildAgent(join(directory, 'next'), '0.9.1'), join(directory, 'next.mjs'));
    await buildAgent(join(directory, 'dist'), '0.9.0');
    copyFileSync(join(directory, 'next.mjs'), join(directory, 'dist/next.mjs'));
    await boot('agent-story.ts', directory);
  }, BOOT_MS + 10_000);
  afterAll(() => rmSync(directory, { recursive: true }));

  it('is installed: enabled, with a lock on the shutdown, and every check of the doctor passes', () => {
    const installed = read<{ doctor: { checks: Finding[] }; inhibitors: string }>('installed');
    expect(installed).toMatchObject({
      active: 'active',
      enabled: 'enabled',
      pods: 'active',
      version: `${KUBERNETES_VERSION}-nodekeeper.0.9.0`,
      delayMax: 't 40000000',
    });
    expect(installed.inhibitors).toMatch(/^kubelet .* shutdown .* delay$/m);
    // A machine with cgroup v1 beside v2 has no controllers for v2. The certificate of the test ends tomorrow.
    const problems = installed.doctor.checks.filter(({ outcome }) => outcome !== 'ok').map(({ check }) => check);
    expect(['certificate', 'cgroups']).toEqual(expect.arrayContaining(problems));
  });

  it('is started again after SIGKILL, and its pod continues in the group of its own unit', () => {
    expect(read('pod')).toMatchObject({
      survived: true,
      phase: 'Running',
      group: expect.stringContaining('0::/system.slice/nodekeeper-pods.service/kubepods/besteffort/pod'),
    });
  });

  it('updates itself, and its pod continues', () => {
    expect(read('updated')).toMatchObject({
      active: 'active',
      version: `${KUBERNETES_VERSION}-nodekeeper.0.9.1`,
      podSurvived: true,
      status: { nodes: 1, updated: 1, updating: [], failed: [] },
    });
  });

  it('terminates its pod before logind shuts the machine down', () => {
    expect(read('shutdown')).toMatchObject({
      pod: {
        phase: 'Failed',
        reason: 'Terminated',
        message: 'Pod was terminated in response to imminent node shutdown.',
      },
    });
  });
});
