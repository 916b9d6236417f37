/**
 * The agent under a real systemd with a real logind and D-Bus, booted in namespaces of its own (boot.sh): installed by
 * install.sh, killed, updated, and shut down with its machine.
 */
import { execFile, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Finding } from '../../agent/rules/finding.ts';
import { buildAgent } from '../../scripts/build-agent.ts';
import { KUBERNETES_VERSION } from '../../shared/kinds/generated/version.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const BOOT_MS = 240_000;

/** Mounts an overlay over the root in new namespaces, with a group of cgroup v2: what boot.sh needs. */
const PROBE = `
mount --make-rprivate / && base=$(mktemp -d) && mount -t tmpfs tmpfs "$base" && mkdir "$base/u" "$base/w" "$base/r" &&
mount -t overlay overlay -o "lowerdir=/,upperdir=$base/u,workdir=$base/w" "$base/r" && mount -t proc proc "$base/r/proc" &&
mount -t cgroup2 cgroup2 "$base/r/mnt" && ip link add a0 type veth peer name a1 && test -x /lib/systemd/systemd &&
test -x /lib/systemd/systemd-logind && command -v dbus-daemon && rmdir "$base" 2>/dev/null; test -d "$base/r/proc/1"`;

function whyNot(): string | undefined {
  if (process.getuid?.() !== 0) return 'not root';
  const namespaces = ['--mount', '--pid', '--fork', '--net', '--cgroup'];
  const { status, stderr } = spawnSync('unshare', [...namespaces, 'sh', '-c', PROBE], { encoding: 'utf8' });
  return status === 0 ? undefined : stderr.trim().slice(0, 200) || 'a program is missing';
}

const missing = whyNot();
const why = missing === undefined ? '' : ` (skipped: systemd cannot be booted: ${missing})`;

describe.skipIf(missing !== undefined)(`the agent under systemd${why}`, () => {
  let directory: string;
  const read = <T>(step: string): T => {
    const path = join(directory, 'results', `${step}.json`);
    return (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {}) as T;
  };

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'nodekeeper-systemd-'));
    copyFileSync(await buildAgent(join(directory, 'next'), '0.9.1'), join(directory, 'next.mjs'));
    await buildAgent(join(directory, 'dist'), '0.9.0');
    copyFileSync(join(directory, 'next.mjs'), join(directory, 'dist/next.mjs'));
    const args = [join(HERE, 'boot.sh'), PROJECT, join(directory, 'dist'), join(directory, 'results')];
    await promisify(execFile)('sh', args, { timeout: BOOT_MS, killSignal: 'SIGKILL' });
    const failed = join(directory, 'results/failed');
    if (existsSync(failed)) throw new Error(readFileSync(failed, 'utf8'));
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
