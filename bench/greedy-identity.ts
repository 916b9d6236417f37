/**
 * One machine sends all that it can with its own credentials, against a whole local mode. Reported: heartbeats of four
 * other machines, `kubectl get nodes`, and whether the safety gate closed.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import {
  type EnrolledMachine,
  enrolMachines,
  GREEDY_REQUESTS,
  leaseRenewal,
  type RawAnswer,
  type RawClient,
  rawClient,
  sendGreedily,
} from '../test/support/greedy-machine.ts';
import { type Benchmark, percentile, readOptions, rounded, wholeNumber, wholeNumbers } from './benchmark.ts';
import { clusterOf, type RunningCluster } from './local-host.ts';

const OTHERS = 4;
const BEAT_EVERY_MS = 1_000;
const KUBECTL_EVERY_MS = 3_000;

export const greedyIdentity: Benchmark = {
  name: 'greedy-identity',
  about: 'one machine that sends all it can: heartbeats of others, kubectl get nodes, the safety gate',
  usage:
    '[--kubeconfig FILE] [--concurrent 20,100] [--seconds 30] [--settle 15] [--attacks heartbeats,ownerReferences,yaml,lists]',
  smallest: ['--concurrent', '1', '--seconds', '1', '--settle', '0', '--attacks', 'heartbeats'],
  startsLocalMode: true,
  onlyByName: true,
  async run(report, words) {
    const options = readOptions(words, {
      kubeconfig: { type: 'string' },
      concurrent: { type: 'string' },
      seconds: { type: 'string' },
      settle: { type: 'string' },
      attacks: { type: 'string' },
    });
    const seconds = wholeNumber('seconds', options.seconds, { least: 1, most: 600, otherwise: 30 });
    // Before each attack: what was learned about the identity is then forgotten.
    const settle = wholeNumber('settle', options.settle, { least: 0, most: 600, otherwise: 15 });
    const bounds = { least: 0, most: 200, otherwise: [20, 100] };
    const concurrents = wholeNumbers('concurrent', options.concurrent, bounds);
    const attacks = options.attacks?.split(',') ?? Object.keys(GREEDY_REQUESTS);
    const folder = mkdtempSync(join(tmpdir(), 'nk-greedy-'));
    const local = await clusterOf(options.kubeconfig, { awsLimits: true, dataDirectory: folder });
    const kubeconfig = options.kubeconfig ?? join(folder, 'kubeconfig');
    const client = rawClient({ url: local.url, ca: local.ca });
    const hostile = rawClient({ url: local.url, ca: local.ca });
    try {
      const names = ['greedy', ...Array.from({ length: OTHERS }, (_, index) => `other-${index}`)];
      const [greedy, ...others] = await enrolMachines(client, { adminToken: local.token }, names);
      const stop = new AbortController();
      const watched = observe({ client, others, kubeconfig }, stop.signal);
      for (const attack of attacks) {
        const next = GREEDY_REQUESTS[attack];
        if (next === undefined) throw new Error(`${attack}: expected one of ${Object.keys(GREEDY_REQUESTS).join()}`);
        for (const concurrent of concurrents) {
          await pause(1_000 * settle);
          watched.take();
          const untilMs = performance.now() + 1_000 * seconds;
          const goOn = (): boolean => performance.now() < untilMs;
          const statuses = await sendGreedily(hostile, () => next(greedy!), { concurrent, goOn });
          if (concurrent === 0) await pause(1_000 * seconds);
          report({
            attack,
            concurrent,
            seconds,
            statuses: JSON.stringify(statuses),
            ...watched.take(),
            ...(await gateOf(client, local)),
          });
        }
      }
      stop.abort();
      await watched.ended;
    } finally {
      client.close();
      hostile.close();
      await local.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** Heartbeats of the others, one per second each, and `kubectl get nodes` every three seconds. */
function observe(
  {
    client,
    others,
    kubeconfig,
  }: { readonly client: RawClient; readonly others: readonly EnrolledMachine[]; readonly kubeconfig: string },
  signal: AbortSignal,
) {
  let beats: RawAnswer[] = [];
  let kubectl: number[] = [];
  let kubectlFailed = 0;
  const every = async (milliseconds: number, act: () => Promise<void>): Promise<void> => {
    while (!signal.aborted) {
      const startedMs = performance.now();
      await act();
      await pause(Math.max(0, milliseconds - (performance.now() - startedMs)));
    }
  };
  const loops = others.map((other) =>
    every(BEAT_EVERY_MS, async () => void beats.push(await client.send(leaseRenewal(other)))),
  );
  const getNodes = async (): Promise<void> => {
    const startedMs = performance.now();
    const arguments_ = ['--kubeconfig', kubeconfig, '--request-timeout=20s', 'get', 'nodes'];
    const isDone = await promisify(execFile)('kubectl', arguments_, { env: { ...process.env, HOME: tmpdir() } }).then(
      () => true,
      () => false,
    );
    kubectl.push(performance.now() - startedMs);
    if (!isDone) kubectlFailed += 1;
  };
  return {
    ended: Promise.all([...loops, every(KUBECTL_EVERY_MS, getNodes)]),
    take() {
      const served = beats.filter(({ status }) => status === 200).map(({ milliseconds }) => milliseconds);
      const figures = {
        beats: beats.length,
        beatsFailed: beats.length - served.length,
        beatP50Ms: rounded(percentile(served, 0.5), 3),
        beatP99Ms: rounded(percentile(served, 0.99), 3),
        kubectlP50Ms: rounded(percentile(kubectl, 0.5), 3),
        kubectlMaxMs: rounded(percentile(kubectl, 1), 3),
        kubectlFailed,
      };
      [beats, kubectl, kubectlFailed] = [[], [], 0];
      return figures;
    },
  };
}

/** How often the safety gate has closed since the start. */
async function gateOf(client: RawClient, { token }: RunningCluster) {
  const path = '/apis/nodekeeper.dev/v1alpha1/decisions?fieldSelector=about.kind%3DFleet';
  const { status, text } = await client.send({ method: 'GET', path, token });
  if (status !== 200) return { gateClosedTimes: Number.NaN };
  return { gateClosedTimes: text.split('"GateClosed"').length - 1 };
}
