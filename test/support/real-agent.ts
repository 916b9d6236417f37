/** A real agent with the runtime `exec`, as a process of its own, in a cluster of a test. */
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { recordsOf } from '../../shared/kubernetes/normal-form.ts';
import type { LocalForTest } from './local.ts';
import { until } from './until.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PODS = '/api/v1/namespaces/default/pods';

export interface RealAgent {
  readonly pid: number;
  output(): string;
  /** Starts a pod of this node, and waits until its containers run, or were restarted once under `Always`. */
  startPod(
    name: string,
    scripts: readonly (readonly [container: string, script: string])[],
    restartPolicy?: 'Never' | 'Always',
  ): Promise<void>;
  deletePod(name: string): Promise<void>;
  /** Ends the process at once. Its pods go on. */
  kill(): void;
  /** Removes the pods, ends the process and removes its files. */
  stop(): Promise<void>;
}

export interface RealAgentOptions {
  readonly nodeName: string;
  readonly leaseSeconds: number;
}

export const podOf = (
  name: string,
  nodeName: string | undefined,
  scripts: readonly (readonly [string, string])[],
  restartPolicy = 'Never',
) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app: 'logs' } },
  spec: {
    ...(nodeName === undefined ? {} : { nodeName }),
    restartPolicy,
    containers: scripts.map(([container, script]) => ({
      name: container,
      image: 'none',
      command: ['/bin/sh', '-c', script],
    })),
  },
});

export async function startRealAgent(
  local: LocalForTest,
  { nodeName, leaseSeconds }: RealAgentOptions,
): Promise<RealAgent> {
  const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-agent-'));
  const command = [join(ROOT, 'cli/bin/nodekeeper.ts'), 'bootstrap-token', 'create', '--nodes', nodeName];
  const { stdout } = await promisify(execFile)(process.execPath, [...command, '--kubeconfig', local.kubeconfig]);
  writeFileSync(join(directory, 'token'), stdout.trim());
  writeFileSync(join(directory, 'ca.pem'), local.access.ca ?? '');
  writeFileSync(
    join(directory, 'agent.yaml'),
    `apiVersion: nodekeeper.dev/v1alpha1
kind: AgentConfiguration
endpoint: "${local.access.url}"
certificateAuthorityFile: ${directory}/ca.pem
bootstrapTokenFile: ${directory}/token
runtime: exec
rootDirectory: ${directory}/root
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
nodeLeaseDurationSeconds: ${leaseSeconds}
`,
  );
  const options = ['--config', join(directory, 'agent.yaml'), '--hostname-override', nodeName, '--healthz-port', '0'];
  const child = spawn(process.execPath, [join(ROOT, 'agent/bin/nodekeeper-agent.ts'), ...options], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }

  async function podNames(): Promise<readonly string[]> {
    const answer = await local.client.send({
      method: 'GET',
      path: `${PODS}?fieldSelector=spec.nodeName%3D${nodeName}`,
    });
    const { items } = (answer.kind === 'answered' ? answer.body : {}) as { items: { metadata: { name: string } }[] };
    return items.map(({ metadata }) => metadata.name);
  }

  // Not 0: then the object no longer exists while its processes still run, and an agent that ends leaves them running.
  const deletePod = async (name: string): Promise<void> => {
    await local.client.send({ method: 'DELETE', path: `${PODS}/${name}`, body: { gracePeriodSeconds: 1 } });
  };

  return {
    pid: child.pid!,
    output: () => output,
    async startPod(name, scripts, restartPolicy = 'Never') {
      const answer = await local.client.send({
        method: 'POST',
        path: PODS,
        body: podOf(name, nodeName, scripts, restartPolicy),
      });
      if (answer.kind !== 'answered' || answer.status !== 201) throw new Error(JSON.stringify(answer));
      const restarts = restartPolicy === 'Always' ? 1 : 0;
      const ready = async (): Promise<boolean> => {
        const found = await local.client.send({ method: 'GET', path: `${PODS}/${name}` });
        const pod = (found.kind === 'answered' ? found.body : {}) as { status?: Record<string, unknown> };
        const statuses = recordsOf(pod.status?.['containerStatuses']);
        return (
          statuses.length === scripts.length &&
          statuses.every((each) => Number(each['restartCount']) >= restarts && each['state'] !== undefined) &&
          (restarts > 0 || statuses.every((each) => JSON.stringify(each['state']).includes('running')))
        );
      };
      await until(ready, { withinMs: 60_000, everyMs: 200, what: `pod ${name}` }).catch((error: Error) => {
        throw new Error(`${error.message}\n${output.slice(-4_000)}`);
      });
    },
    deletePod,
    kill: () => void child.kill('SIGKILL'),
    async stop() {
      for (const name of await podNames()) await deletePod(name);
      await until(async () => (await podNames()).length === 0, { withinMs: 30_000, everyMs: 200, what: 'no pods' });
      child.kill('SIGTERM');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
