/** Memory of `nodekeeper serve` while Helm rolls out a chart again and again. Each release replaces every pod. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startFleet } from '../demo/fleet/fleet.ts';
import { packagedProgram } from '../test/support/kubectl-layers.ts';
import { type Benchmark, readOptions, rounded, wholeNumber } from './benchmark.ts';
import { processesBelow } from './process-cpu.ts';
import { startServeHost } from './serve-host.ts';

const CHART = fileURLToPath(new URL('../test/fixtures/chart', import.meta.url));
const ZONES = ['zone-1', 'zone-2', 'zone-3'];
const MB = 1_048_576;
const MINOR = 35;
const runProgram = promisify(execFile);

export const helm: Benchmark = {
  name: 'helm',
  about: 'memory of nodekeeper serve after rollouts by Helm',
  usage: '[--nodes 50] [--replicas 60] [--releases 5]',
  smallest: ['--nodes', '2', '--replicas', '1', '--releases', '1'],
  onlyByName: true,
  async run(report, words) {
    const options = readOptions(words, {
      nodes: { type: 'string' },
      replicas: { type: 'string' },
      releases: { type: 'string' },
    });
    const nodes = wholeNumber('nodes', options.nodes, { least: 1, most: 1_000, otherwise: 50 });
    const replicas = wholeNumber('replicas', options.replicas, { least: 1, most: 1_000, otherwise: 60 });
    const releases = wholeNumber('releases', options.releases, { least: 1, most: 100, otherwise: 5 });
    const host = await startServeHost();
    const { url, ca, token } = host.fleet;
    const machines = startFleet({ url, token, nodes, zones: ZONES, ...(ca === undefined ? {} : { ca }) });
    const home = mkdtempSync(join(tmpdir(), 'nk-bench-helm-'));
    const env = { HOME: home, PATH: process.env['PATH'] ?? '', KUBECONFIG: host.kubeconfig };
    const program = packagedProgram(MINOR, 'helm');
    const residentMegabytes = (): number =>
      rounded(processesBelow([host.pid]).reduce((sum, { residentBytes }) => sum + residentBytes, 0) / MB, 3);
    try {
      for (let release = 1; release <= releases; release += 1) {
        const set = `replicas=${replicas},image=registry.example/app:${release}`;
        // The simulated machines are in this process, so it must not stand still meanwhile.
        await runProgram(program, ['upgrade', '--install', 'app', CHART, '--set', set, '--wait'], { env });
        report({ nodes, replicas, release, residentMegabytes: residentMegabytes() });
      }
    } finally {
      rmSync(home, { recursive: true, force: true });
      await machines.stop();
      await host.stop();
    }
  },
};
