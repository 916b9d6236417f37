/** Starts an upstream control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler. */

import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiClient } from '../../demo/fleet/api-client.ts';
import { freePort } from '../../shared/host/loopback.ts';
import { apiClientOf, readKubeconfig } from '../support/kubeconfig.ts';
import { until } from '../support/until.ts';
import { UsageError } from './command.ts';

export interface ControlPlane {
  readonly kubeconfig: string;
  readonly client: ApiClient;
  stop(): Promise<void>;
}

export interface UpstreamOptions {
  /** A source tree after `make`, or a folder with kube-apiserver, kube-controller-manager and kube-scheduler. */
  readonly kubernetes: string;
  readonly etcd: string;
  /** For data, certificates and logs. */
  readonly dir: string;
  /** Tolerations of dead nodes. Seconds. */
  readonly evictionSeconds: number;
  /** Silence after which a node is Unknown. Seconds. */
  readonly graceSeconds: number;
}

const START_MS_MAX = 60_000;
const TOKEN = 'peer-administrator';
/** What this comparison has no counterpart for is off: cloud, volumes, endpoints, certificates, autoscaling. */
const CONTROLLERS = [
  'cronjob',
  'daemonset',
  'deployment',
  'disruption',
  'garbagecollector',
  'job',
  'namespace',
  'nodelifecycle',
  'podgc',
  'replicaset',
  'replicationcontroller',
  'resourcequota',
  'serviceaccount',
  'statefulset',
  'ttl-after-finished',
];

/** @throws UsageError when the programs are missing */
export async function startUpstream(options: UpstreamOptions): Promise<ControlPlane> {
  const { etcd, dir, evictionSeconds, graceSeconds } = options;
  const programs = programsOf(options.kubernetes);
  const [clientPort, peerPort, apiPort] = [await freePort(), await freePort(), await freePort()];
  const key = join(dir, 'service-accounts.key');
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  writeFileSync(key, privateKey.export({ type: 'pkcs1', format: 'pem' }));
  writeFileSync(join(dir, 'tokens.csv'), `${TOKEN},admin,admin,"system:masters"\n`);
  const children: ChildProcess[] = [];
  const start = (program: string, flags: readonly string[]): void => {
    const name = program.slice(program.lastIndexOf('/') + 1);
    const log = openSync(join(dir, `${name}.log`), 'w');
    children.push(spawn(program, flags, { cwd: dir, stdio: ['ignore', log, log] }));
  };
  const stop = async (): Promise<void> => {
    for (const child of children.toReversed()) await ended(child);
  };
  const [url, store] = [`https://127.0.0.1:${apiPort}`, `http://127.0.0.1:${clientPort}`];
  const peer = `http://127.0.0.1:${peerPort}`;
  try {
    start(etcd, [
      ...['--data-dir', join(dir, 'etcd'), '--unsafe-no-fsync'],
      ...['--listen-client-urls', store, '--advertise-client-urls', store],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`],
    ]);
    start(join(programs, 'kube-apiserver'), [
      `--etcd-servers=${store}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${apiPort}`,
      `--cert-dir=${join(dir, 'certificates')}`,
      `--token-auth-file=${join(dir, 'tokens.csv')}`,
      '--authorization-mode=AlwaysAllow',
      '--service-account-issuer=https://peer.invalid',
      `--service-account-key-file=${key}`,
      `--service-account-signing-key-file=${key}`,
      '--service-cluster-ip-range=10.96.0.0/24',
      // It would mount a Secret with a token, which no release makes since 1.24.
      '--disable-admission-plugins=ServiceAccount',
      '--feature-gates=TTLAfterFinished=true',
      `--default-not-ready-toleration-seconds=${evictionSeconds}`,
      `--default-unreachable-toleration-seconds=${evictionSeconds}`,
    ]);
    const certificate = join(dir, 'certificates', 'apiserver.crt');
    const kubeconfig = join(dir, 'kubeconfig');
    writeFileSync(kubeconfig, kubeconfigText(url, certificate));
    const client = await answering(kubeconfig, () => children.some(({ exitCode }) => exitCode !== null));
    start(join(programs, 'kube-controller-manager'), [
      `--kubeconfig=${kubeconfig}`,
      '--port=0',
      '--secure-port=0',
      '--leader-elect=false',
      `--controllers=${CONTROLLERS.join(',')}`,
      '--feature-gates=TTLAfterFinished=true,CronJobControllerV2=true',
      `--node-monitor-grace-period=${graceSeconds}s`,
      '--node-eviction-rate=1',
    ]);
    start(join(programs, 'kube-scheduler'), [
      `--kubeconfig=${kubeconfig}`,
      '--port=0',
      '--secure-port=0',
      '--leader-elect=false',
    ]);
    return {
      kubeconfig,
      client,
      async stop() {
        client.close();
        await stop();
      },
    };
  } catch (cause) {
    await stop();
    throw cause;
  }
}

function programsOf(kubernetes: string): string {
  const folders = [join(kubernetes, '_output/local/go/bin'), kubernetes];
  const found = folders.find((dir) => existsSync(join(dir, 'kube-controller-manager')));
  if (found === undefined) throw new UsageError(`${kubernetes} has no kube-controller-manager`);
  return found;
}

/** kube-apiserver writes its certificate when it starts. */
async function answering(kubeconfig: string, hasEnded: () => boolean): Promise<ApiClient> {
  const started = await until(
    async () => {
      if (hasEnded()) return 'ended';
      const client = apiClientOf(readKubeconfig(kubeconfig), { connectionsMax: 8, timeoutMs: 10_000 });
      const answer = await client.send({ method: 'GET', path: '/readyz' });
      if (answer.kind === 'answered' && answer.status === 200) return client;
      client.close();
      return undefined;
    },
    { withinMs: START_MS_MAX, everyMs: 500, what: 'a kube-apiserver that answers' },
  );
  if (started === 'ended') throw new Error('a program of the upstream control plane ended; its log is in its folder');
  return started;
}

const kubeconfigText = (server: string, certificate: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'peer',
    contexts: [{ name: 'peer', context: { cluster: 'peer', user: 'admin' } }],
    clusters: [{ name: 'peer', cluster: { server, 'certificate-authority': certificate } }],
    users: [{ name: 'admin', user: { token: TOKEN } }],
  });

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const exit = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await exit;
  clearTimeout(timer);
}
