/**
 * Memory and CPU of one agent: the bundled file as a process of its own, started with the flags of its systemd unit,
 * enrolled in local mode, idle, with pods, or while one reader follows a log of a megabyte per second. Memory is the
 * resident memory of the kernel, Node itself included; CPU is user and system time over wall time. The processes of
 * pods are not counted.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { bootstrapTokenCommand } from '../cli/bootstrap-token.ts';
import { createApiClient } from '../demo/fleet/api-client.ts';
import { agentNodeFlags, agentVariables, buildAgent } from '../scripts/build-agent.ts';
import type { KubeNode, KubePod } from '../shared/kinds/types.ts';
import { until } from '../test/support/until.ts';
import { type Benchmark, type Figures, readOptions, rounded, wholeNumber } from './benchmark.ts';
import { clusterOf, type RunningCluster } from './local-host.ts';
import { cpuUseOf } from './process-cpu.ts';

const NODE = 'agent-bench';
const LINES_AT_ONCE = 1_000;
const LINES_EVERY_SECONDS = 0.1;
const PODS_PATH = '/api/v1/namespaces/default/pods';
/** From Ready on, until what the start needed is done with. Seconds. */
const SETTLE_SECONDS = 30;
/** Measured time of an idle agent. A followed log ends after 100 MB, so it is measured for a minute at most. */
const SECONDS = 60;

interface AgentOptions {
  readonly pods: number;
  readonly isFollowed: boolean;
  readonly settleMs: number;
  readonly measureMs: number;
}

export const agent: Benchmark = {
  name: 'agent',
  about: 'resident memory and share of a core of one agent process: idle, with pods, and while a log is followed',
  usage: `[--kubeconfig FILE] [--pods 0] [--follow] [--settle ${SETTLE_SECONDS}] [--seconds ${SECONDS}]`,
  smallest: ['--settle', '0', '--seconds', '1'],
  startsLocalMode: true,
  async run(report, words) {
    const text = { type: 'string' } as const;
    const values = readOptions(words, {
      kubeconfig: text,
      pods: text,
      settle: text,
      seconds: text,
      follow: { type: 'boolean' },
    });
    const options = {
      pods: wholeNumber('pods', values.pods, { least: 0, most: 100, otherwise: 0 }),
      isFollowed: values.follow === true,
      settleMs: 1_000 * wholeNumber('settle', values.settle, { least: 0, most: 600, otherwise: SETTLE_SECONDS }),
      measureMs: 1_000 * wholeNumber('seconds', values.seconds, { least: 1, most: 3_600, otherwise: SECONDS }),
    };
    const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-agent-'));
    const [local, bundle] = await Promise.all([clusterOf(values.kubeconfig, {}), buildAgent(join(directory, 'dist'))]);
    try {
      report({ bundleBytes: statSync(bundle).size, ...(await measure(local, bundle, directory, options)) });
    } finally {
      await local.stop();
      rmSync(directory, { recursive: true });
    }
  },
};

async function measure(
  local: RunningCluster,
  bundle: string,
  directory: string,
  { pods, isFollowed, settleMs, measureMs }: AgentOptions,
): Promise<Figures> {
  const config = await configure(local, directory);
  const flags = agentNodeFlags();
  // The lines of its log are few, and dropped.
  const child = spawn(process.execPath, [...flags, bundle, '--config', config], {
    stdio: 'ignore',
    env: { PATH: process.env['PATH'], ...agentVariables() },
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const pid = child.pid!;
  try {
    const startedMs = performance.now();
    await readiness(local);
    const readySeconds = (performance.now() - startedMs) / 1_000;
    const startCpuMs = cpuMsOf(pid);
    if (pods > 0) await startPods(local, pods);
    const followed = isFollowed ? await startLog(local) : undefined;
    const podsCpuMs = cpuMsOf(pid) - startCpuMs;
    await pause(settleMs);
    const [before, fromMs, fromBytes] = [cpuMsOf(pid), performance.now(), followed?.bytes() ?? 0];
    await pause(measureMs);
    const [cpuMs, elapsedMs] = [cpuMsOf(pid) - before, performance.now() - fromMs];
    const { VmRSS, VmHWM, RssAnon } = memoryOf(pid);
    return {
      pods,
      nodeFlags: flags.join(' '),
      variables: Object.entries(agentVariables())
        .map((each) => each.join('='))
        .join(' '),
      readyAfterSeconds: rounded(readySeconds),
      startCpuMs: rounded(startCpuMs),
      podsCpuMs: rounded(podsCpuMs),
      residentMegabytes: megabytes(VmRSS),
      residentMegabytesPeak: megabytes(VmHWM),
      // The agent's private part of the resident memory; the rest is mapped from Node's own file.
      anonymousMegabytes: megabytes(RssAnon),
      ...(followed === undefined
        ? {}
        : { readBytesPerSecond: rounded((1_000 * (followed.bytes() - fromBytes)) / elapsedMs) }),
      seconds: rounded(elapsedMs / 1_000),
      cpuMs: rounded(cpuMs),
      percentOfOneCore: rounded((100 * cpuMs) / elapsedMs, 3),
    };
  } finally {
    if (pods > 0 || isFollowed) await removePods(local);
    child.kill('SIGTERM');
    await ended;
  }
}

const shell = (script: string) => ({ image: 'none', command: ['/bin/sh', '-c', script] });

/** Resolves when all pods are ready. */
async function startPods(local: RunningCluster, count: number): Promise<void> {
  await withClient(local, async (client) => {
    await client.send({
      method: 'POST',
      path: '/api/v1/namespaces/default/configmaps',
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data: { color: 'green' } },
    });
    const probe = { periodSeconds: 10, timeoutSeconds: 10, exec: { command: ['true'] } };
    for (let index = 0; index < count; index += 1) {
      const main = {
        name: 'main',
        ...shell('exec sleep 100000'),
        env: [{ name: 'COLOR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'color' } } }],
        volumeMounts: [{ name: 'settings', mountPath: '/tmp/nodekeeper-bench' }],
        livenessProbe: probe,
        readinessProbe: probe,
        startupProbe: probe,
      };
      const volumes = [{ name: 'settings', configMap: { name: 'settings' } }];
      const body = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `pod-${index}` },
        spec: { nodeName: NODE, terminationGracePeriodSeconds: 1, volumes, containers: [main] },
      };
      await client.send({ method: 'POST', path: PODS_PATH, body });
    }
    await until(async () => (await readyPods(client)) === count, {
      withinMs: 120_000,
      everyMs: 1_000,
      what: `${count} ready pods`,
    });
  });
}

/** Starts a pod that writes lines of 100 bytes, and follows its log. Returns how many bytes were read. */
async function startLog(local: RunningCluster): Promise<{ readonly bytes: () => number }> {
  const line = 'x'.repeat(99);
  // The pause runs beside the output: the rate does not depend on how fast the machine is.
  const script = `while :; do sleep ${LINES_EVERY_SECONDS} & yes ${line} | head -n ${LINES_AT_ONCE}; wait; done`;
  const containers = [{ name: 'main', ...shell(script) }];
  const spec = { nodeName: NODE, terminationGracePeriodSeconds: 1, containers };
  const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'writer' }, spec };
  await withClient(local, async (client) => {
    await client.send({ method: 'POST', path: PODS_PATH, body });
    const waiting = { withinMs: 60_000, everyMs: 500, what: 'a running pod' };
    await until(async () => (await readyPods(client)) === 1, waiting);
  });
  let bytes = 0;
  const follow = (url: string): void => {
    const headers = { authorization: `Bearer ${local.token}` };
    get(url, { ca: local.ca, headers }, (response) => {
      const { location } = response.headers;
      if (location === undefined) response.on('data', (piece: Buffer) => (bytes += piece.length));
      else {
        response.resume();
        follow(location);
      }
    });
  };
  follow(`${local.url}${PODS_PATH}/writer/log?follow=true`);
  return { bytes: () => bytes };
}

/** Ends the processes of the pods: the agent leaves them running. */
async function removePods(local: RunningCluster): Promise<void> {
  await withClient(local, async (client) => {
    for (const { metadata } of await podsOf(client)) {
      await client.send({ method: 'DELETE', path: `${PODS_PATH}/${metadata.name}`, body: { gracePeriodSeconds: 1 } });
    }
    await until(async () => (await podsOf(client)).length === 0, { withinMs: 60_000, everyMs: 1_000, what: 'no pods' });
  });
}

async function podsOf(client: ReturnType<typeof createApiClient>): Promise<readonly KubePod[]> {
  const answer = await client.send({ method: 'GET', path: PODS_PATH });
  return answer.kind === 'answered' ? ((answer.body as { items?: KubePod[] }).items ?? []) : [];
}

const readyPods = async (client: ReturnType<typeof createApiClient>): Promise<number> =>
  (await podsOf(client)).filter(({ status }) =>
    status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True'),
  ).length;

async function configure(local: RunningCluster, directory: string): Promise<string> {
  const file = (name: string): string => join(directory, name);
  writeFileSync(file('ca.pem'), local.ca);
  // With an equals sign: a token may begin with a dash.
  const access = ['--server', local.url, `--token=${local.token}`, '--certificate-authority', file('ca.pem')];
  await bootstrapTokenCommand(['create', ...access], {
    environment: {},
    nowMs: Date.now(),
    print: (line) => writeFileSync(file('bootstrap-token'), line),
  });
  writeFileSync(
    file('agent.yaml'),
    `apiVersion: nodekeeper.dev/v1alpha1
kind: AgentConfiguration
endpoint: "${local.url}"
certificateAuthorityFile: ${file('ca.pem')}
bootstrapTokenFile: ${file('bootstrap-token')}
hostnameOverride: ${NODE}
rootDirectory: ${file('root')}
runtime: exec
healthzPort: 0
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
`,
  );
  return file('agent.yaml');
}

async function withClient(
  local: RunningCluster,
  act: (client: ReturnType<typeof createApiClient>) => Promise<void>,
): Promise<void> {
  const client = createApiClient({
    url: local.url,
    ca: local.ca,
    token: local.token,
    connectionsMax: 1,
    timeoutMs: 10_000,
  });
  try {
    await act(client);
  } finally {
    client.close();
  }
}

async function readiness(local: RunningCluster): Promise<void> {
  await withClient(local, async (client) => {
    await until(
      async () => {
        const answer = await client.send({ method: 'GET', path: `/api/v1/nodes/${NODE}` });
        const node = answer.kind === 'answered' && answer.status === 200 ? (answer.body as KubeNode) : undefined;
        return node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
      },
      { withinMs: 60_000, everyMs: 250, what: 'an agent with a Ready node' },
    );
  });
}

const cpuMsOf = (pid: number): number => [...cpuUseOf(pid).byThread.values()].reduce((sum, ms) => sum + ms, 0);

/** Kibibytes (proc_pid_status(5)). */
function memoryOf(pid: number): Readonly<Record<'VmRSS' | 'VmHWM' | 'RssAnon', number>> {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  const of = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1]);
  return { VmRSS: of('VmRSS'), VmHWM: of('VmHWM'), RssAnon: of('RssAnon') };
}

const megabytes = (kibibytes: number): number => rounded(kibibytes / 1_024);
