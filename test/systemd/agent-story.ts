/**
 * What happens inside a booted systemd (boot.sh): the agent is installed, runs a pod, is killed, updates itself, and
 * shuts the machine down. Each step writes what it found to a file in RESULTS. The last step ends this process.
 *
 *   agent-story.ts AGENT_DIST RESULTS
 */

import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import type { KubeAgentRelease, KubePod } from '../../shared/kinds/types.ts';
import { until } from '../support/until.ts';
import { nodeApi } from './node-api.ts';

const [DIST = '', RESULTS = ''] = process.argv.slice(2);
const NODE = 'edge-1';
const { api, certificates, conditionOf, get, nodeOf, serve } = nodeApi(NODE);
const WORK = '/tmp/story';
const RELEASE_SCRIPT = fileURLToPath(new URL('../../scripts/agent-release.ts', import.meta.url));
const soon = { withinMs: 60_000, everyMs: 200 };

/** Never blocks: the API is in this process. */
async function run(command: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(command, [...args]);
  return stdout.trim();
}
const record = (step: string, value: unknown): void =>
  writeFileSync(join(RESULTS, `${step}.json`), JSON.stringify(value, undefined, 2));

/** Exit code 1 of the doctor is a finding, no fault of the story. */
async function doctorReport(): Promise<unknown> {
  try {
    return JSON.parse(await run('nodekeeper-agent', 'doctor', '--json'));
  } catch (error) {
    return JSON.parse(String((error as { stdout?: string }).stdout));
  }
}

const versionOf = async () => (await nodeOf()).status?.nodeInfo?.['kubeletVersion'];
const podOf = () => get<KubePod>('/api/v1/namespaces/default/pods/web');
const unit = (property: string): Promise<string> =>
  run('systemctl', 'show', '-P', property, 'nodekeeper-agent.service');
/** The process id of the only program of the pod. */
const podPid = (): Promise<string> => run('pgrep', '-x', '-f', 'sleep 54321');

async function install(endpoint: string): Promise<void> {
  writeFileSync(join(WORK, 'token'), 'node-token');
  writeFileSync(join(WORK, 'ca.pem'), certificates.join(''));
  await run('node', RELEASE_SCRIPT, '--new-key', join(WORK, 'key'));
  const printed = await run(
    join(DIST, 'install.sh'),
    ...['--endpoint', endpoint, '--token-file', join(WORK, 'token'), '--certificate-authority', join(WORK, 'ca.pem')],
    ...['--node-name', NODE, '--runtime', 'exec', '--update-key', join(WORK, 'key.pub')],
  );
  const ready = async () => conditionOf(await nodeOf(), 'Ready')?.status === 'True';
  await until(ready, { ...soon, what: 'a Ready node' });
  const node = await nodeOf();
  record('installed', {
    printed,
    active: await unit('ActiveState'),
    enabled: await unit('UnitFileState'),
    pods: await run('systemctl', 'is-active', 'nodekeeper-pods.service'),
    version: await versionOf(),
    ready: conditionOf(node, 'Ready')?.message,
    inhibitors: await run('systemd-inhibit', '--list', '--no-legend'),
    delayMax: await run(
      'busctl',
      ...['get-property', 'org.freedesktop.login1', '/org/freedesktop/login1'],
      ...['org.freedesktop.login1.Manager', 'InhibitDelayMaxUSec'],
    ),
    doctor: await doctorReport(),
  });
}

/** Before the node exists: without the functions of the cluster nothing reports new pods to the agent. */
async function createPod(): Promise<void> {
  // The shell ends with the exit code that proves that the pod was terminated in order.
  const script = 'trap "exit 0" TERM; cat /var/run/secrets/kubernetes.io/serviceaccount/namespace; sleep 54321 & wait';
  const spec = {
    nodeName: NODE,
    terminationGracePeriodSeconds: 5,
    containers: [{ name: 'main', image: 'none', command: ['/bin/sh', '-c', script] }],
  };
  await api.send('POST', '/api/v1/namespaces/default/pods', { body: { kind: 'Pod', metadata: { name: 'web' }, spec } });
}

async function killAgent(): Promise<void> {
  await until(async () => (await podOf()).status?.phase === 'Running', { ...soon, what: 'a running pod' });
  // Its shell starts it last.
  const pid = await until(podPid, { ...soon, what: 'the program of the pod' });
  const group = readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim();
  const restarts = Number(await unit('NRestarts'));
  await run('systemctl', 'kill', '-s', 'KILL', 'nodekeeper-agent.service');
  const restarted = async () => Number(await unit('NRestarts')) > restarts && (await unit('ActiveState')) === 'active';
  await until(restarted, { ...soon, what: 'a restart' });
  record('pod', { group, survived: (await podPid()) === pid, phase: (await podOf()).status?.phase });
}

async function update(): Promise<void> {
  const files = createServer((_request, response) => response.end(readFileSync(join(DIST, 'next.mjs'))));
  const port = await listenOnLoopback(files);
  const url = `http://127.0.0.1:${port}/next.mjs`;
  const args = ['--file', join(DIST, 'next.mjs'), '--key', join(WORK, 'key'), '--url', url];
  const release = parse(await run('node', RELEASE_SCRIPT, ...args));
  const path = '/apis/nodekeeper.dev/v1alpha1/agentreleases';
  await api.send('POST', path, { body: release });
  const config = readFileSync('/etc/nodekeeper/agent.yaml', 'utf8');
  writeFileSync('/etc/nodekeeper/agent.yaml', config.replace('---\n', 'updateCheckPeriod: 10s\n---\n'));
  const pid = await podPid();
  await run('systemctl', 'restart', 'nodekeeper-agent.service');
  const isDone = async () => (await get<KubeAgentRelease>(`${path}/agent`)).status?.updated === 1;
  await until(isDone, { ...soon, what: 'the update' });
  const { status } = await get<KubeAgentRelease>(`${path}/agent`);
  // The status of the Node follows with its next post.
  await until(async () => (await versionOf())?.endsWith('.0.9.1'), { ...soon, what: 'the version of the Node' });
  record('updated', {
    status,
    active: await unit('ActiveState'),
    version: await versionOf(),
    podSurvived: (await podPid()) === pid,
    memoryBytes:
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${await unit('MainPID')}/status`, 'utf8'))?.[1]) * 1_024,
  });
}

async function shutDown(): Promise<void> {
  await run(
    'busctl',
    'call',
    'org.freedesktop.login1',
    '/org/freedesktop/login1',
    'org.freedesktop.login1.Manager',
    'PowerOff',
    'b',
    'false',
  );
  const isOver = async () => (await podOf()).status?.phase === 'Failed';
  await until(isOver, { ...soon, what: 'the end of the pod' });
  record('shutdown', { pod: (await podOf()).status });
  process.exit(0);
}

// The shutdown also stops this process: it first records what happened to the pod.
process.on('SIGTERM', () => undefined);
mkdirSync(WORK, { recursive: true });
try {
  const server = await serve();
  await createPod();
  await install(server.url);
  await killAgent();
  await update();
  await shutDown();
} catch (error) {
  let journal = '';
  try {
    journal = await run('journalctl', '--no-pager', '-u', 'nodekeeper-agent', '-n', '60');
  } catch {
    journal = 'no journal';
  }
  const { stderr = '', stack = '' } = error as { stderr?: string; stack?: string };
  writeFileSync(
    join(RESULTS, 'failed'),
    `${stack}\n${stderr}\n${journal}\n${api.faults.join('\n')}\n${JSON.stringify(await podOf())}`,
  );
  await run('systemctl', '--no-block', 'exit');
}
