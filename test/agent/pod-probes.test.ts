/** Probes of containers, from the API through the agent to processes and ports of this machine. */

import { rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { KUBERNETES_MINOR } from '../../shared/kinds/generated/version.ts';
import { conditionOf, type ExecAgent, execAgent, shell, statusOf } from '../support/exec-agent.ts';

let agent: ExecAgent;
let server: Server;
let port: number;
/** The answer of the probed server. */
let status: number;
let requested: string[];

beforeEach(async () => {
  status = 200;
  requested = [];
  server = createServer(({ url, headers }, response) => {
    requested.push(`${url} ${headers['user-agent']} ${headers['x-probe'] ?? ''}`.trim());
    response.writeHead(status, status === 302 ? { location: 'http://elsewhere.example/' } : {}).end('body');
  });
  port = await listenOnLoopback(server);
});
afterEach(async () => {
  await agent.close();
  server.close();
});

const main = (more: Record<string, unknown>, script = 'sleep 600') => ({ name: 'main', ...shell(script), ...more });
const isReady = (value: string) => (pod: Parameters<typeof conditionOf>[0]) => conditionOf(pod, 'Ready') === value;

describe('a readiness probe', () => {
  it('by HTTP decides whether the pod is ready, and reports failures as a kubelet', async () => {
    agent = await execAgent(10);
    status = 503;
    const httpHeaders = [{ name: 'X-Probe', value: 'yes' }];
    const readinessProbe = {
      httpGet: { path: '/ready', port: 'web', httpHeaders },
      timeoutSeconds: 600,
      periodSeconds: 1,
      failureThreshold: 1,
    };
    const ports = [{ name: 'web', containerPort: port }];
    await agent.bind('web', { containers: [main({ ports, readinessProbe })] });
    await agent.eventSeen('web: Warning Unhealthy Readiness probe failed: HTTP probe failed with statuscode: 503');
    const unready = await agent.statusHas('web', 'not ready', isReady('False'));
    expect(conditionOf(unready, 'ContainersReady')).toBe('False');
    expect(statusOf(unready, 'main')).toMatchObject({ ready: false, started: true, restartCount: 0 });
    expect(requested[0]).toBe(`/ready kube-probe/1.${KUBERNETES_MINOR} yes`);
    status = 200;
    await agent.statusHas('web', 'ready', isReady('True'));
    status = 500;
    await agent.statusHas('web', 'not ready again', isReady('False'));
    status = 302;
    await agent.statusHas('web', 'ready again', isReady('True'));
    await agent.eventSeen('web: Warning ProbeWarning Readiness probe warning: Probe terminated redirects');
  });

  it('by TCP reports a refused connection', async () => {
    agent = await execAgent(10);
    await new Promise((resolve) => server.close(resolve));
    const readinessProbe = { tcpSocket: { port }, periodSeconds: 1, failureThreshold: 1 };
    await agent.bind('web', { containers: [main({ readinessProbe })] });
    await agent.eventSeen(`Readiness probe failed: dial tcp 127.0.0.1:${port}: connect: connection refused`);
  });
});

describe('a liveness probe', () => {
  it('by a command restarts the container when it has failed often enough', async () => {
    agent = await execAgent(10);
    const livenessProbe = {
      exec: { command: ['/bin/sh', '-c', 'echo "no $NAME"; exit $(test -e $FLAG; echo $?)'] },
      periodSeconds: 1,
      timeoutSeconds: 600,
      failureThreshold: 3,
    };
    const flag = join(agent.rootDirectory, 'alive');
    writeFileSync(flag, '');
    const env = [
      { name: 'FLAG', value: flag },
      { name: 'NAME', value: 'luck' },
    ];
    const script = 'trap "exit 0" TERM; while :; do sleep 0.05; done';
    await agent.bind('web', { restartPolicy: 'Always', containers: [main({ livenessProbe, env }, script)] });
    await agent.statusHas('web', 'ready', isReady('True'));
    expect(agent.events.filter((each) => each.includes('Unhealthy'))).toEqual([]);
    rmSync(flag);
    await agent.eventSeen('web: Normal Killing Container main failed liveness probe, will be restarted');
    expect(agent.events.filter((each) => each.includes('Liveness probe failed: no luck')).length).toBe(3);
    writeFileSync(flag, '');
    const restarted = await agent.statusHas('web', 'a restart', (pod) => statusOf(pod, 'main')?.restartCount === 1);
    expect(statusOf(restarted, 'main')?.lastState?.terminated).toMatchObject({ exitCode: 0 });
  });

  it('by a command that hangs times out', async () => {
    agent = await execAgent(10);
    const livenessProbe = { exec: { command: ['sleep', '600'] }, periodSeconds: 1, failureThreshold: 1 };
    await agent.bind('web', { terminationGracePeriodSeconds: 1, containers: [main({ livenessProbe })] });
    await agent.eventSeen('web: Warning Unhealthy Liveness probe failed: command "sleep 600" timed out');
    // The restart policy is Never.
    await agent.eventSeen(/web: Normal Killing Container main failed liveness probe$/);
    const failed = await agent.statusHas('web', 'Failed', (pod) => pod.status?.phase === 'Failed');
    expect(statusOf(failed, 'main')?.state?.terminated).toMatchObject({ exitCode: 143, signal: 15, reason: 'Error' });
  });
});

describe('a startup probe', () => {
  it('holds the other probes, and the containers after a sidecar, until it succeeds', async () => {
    agent = await execAgent(10);
    status = 404;
    const probe = (path: string) => ({ httpGet: { path, port }, periodSeconds: 1, timeoutSeconds: 600 });
    const sidecar = {
      name: 'side',
      restartPolicy: 'Always',
      ...shell('sleep 600'),
      startupProbe: { ...probe('/startup'), failureThreshold: 1_000 },
      livenessProbe: probe('/live'),
    };
    await agent.bind('web', { initContainers: [sidecar], containers: [main({})] });
    await agent.eventSeen('Startup probe failed: HTTP probe failed with statuscode: 404');
    const starting = await agent.statusHas(
      'web',
      'Pending',
      (pod) => statusOf(pod, 'side')?.state?.running !== undefined,
    );
    expect(statusOf(starting, 'side')).toMatchObject({ started: false, ready: false });
    expect(statusOf(starting, 'main')?.state?.waiting?.reason).toBe('PodInitializing');
    expect(starting.status?.phase).toBe('Pending');
    expect(requested.some((each) => each.startsWith('/live'))).toBe(false);
    status = 200;
    const ready = await agent.statusHas('web', 'ready', isReady('True'));
    expect(statusOf(ready, 'side')).toMatchObject({ started: true, ready: true });
    expect(conditionOf(ready, 'Initialized')).toBe('True');
    expect(conditionOf(ready, 'PodReadyToStartContainers')).toBe('True');
  });
});

describe('probes', () => {
  it('by gRPC are refused with an event', async () => {
    agent = await execAgent();
    await agent.bind('web', { containers: [main({ livenessProbe: { grpc: { port: 1 } } })] });
    await agent.eventSeen('web: Warning Failed Error: livenessProbe.grpc is not supported on this node');
  });

  it('leave a pod ready that was ready when the agent is restarted', async () => {
    agent = await execAgent();
    const readinessProbe = { httpGet: { port }, periodSeconds: 1, timeoutSeconds: 60 };
    await agent.bind('web', { containers: [main({ readinessProbe })] });
    await agent.statusHas('web', 'ready', isReady('True'));
    const written = agent.requests.filter((each) => each.startsWith('PATCH')).length;
    const probed = requested.length;
    await agent.restartAgent();
    await agent.statusHas(
      'web',
      'ready, and probed again',
      (pod) => isReady('True')(pod) && requested.length > probed + 1,
    );
    expect(agent.requests.filter((each) => each.startsWith('PATCH')).length - written).toBeLessThanOrEqual(1);
    expect(agent.events.filter((each) => each.includes('Unhealthy'))).toEqual([]);
  });
});
