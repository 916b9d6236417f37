/** Hooks, sidecars and termination messages, from the API through the agent to processes. */

import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { type ExecAgent, execAgent, shell, statusOf } from '../support/exec-agent.ts';
import { until } from '../support/until.ts';

let agent: ExecAgent;
afterEach(() => agent.close());

const exec = (script: string) => ({ exec: { command: ['/bin/sh', '-c', script] } });
const OBEDIENT = 'trap "exit 0" TERM; while :; do sleep 0.05; done';

describe('a postStart hook', () => {
  it('runs in the container, and terminates it when it fails', async () => {
    agent = await execAgent();
    const good = {
      name: 'main',
      ...shell(OBEDIENT),
      env: [{ name: 'A', value: 'seen' }],
      lifecycle: { postStart: exec('echo "hook $A"') },
    };
    const pod = await agent.bind('good', { containers: [good] });
    await agent.outputHas(pod, 'hook seen');
    await agent.bind('bad', {
      containers: [{ name: 'main', ...shell(OBEDIENT), lifecycle: { postStart: exec('exit 1') } }],
    });
    await agent.eventSeen('bad: Warning FailedPostStartHook PostStartHook failed');
    const ended = await agent.statusHas('bad', 'the container has terminated', (each) => {
      return statusOf(each, 'main')?.state?.terminated !== undefined;
    });
    // It may be signalled before its shell has set the trap.
    expect([0, 143]).toContain(statusOf(ended, 'main')?.state?.terminated?.exitCode);
  });
});

describe('a preStop hook', () => {
  it('runs before SIGTERM, by a command or by HTTP, and its failure is an event', async () => {
    agent = await execAgent();
    const paths: string[] = [];
    const server = createServer(({ url = '' }, response) => {
      paths.push(url);
      response.end();
    });
    const port = await listenOnLoopback(server);
    const trap = 'trap "echo term; exit 0" TERM; echo up; while :; do sleep 0.05; done';
    const container = (name: string, preStop: unknown) => ({ name, ...shell(trap), lifecycle: { preStop } });
    const pod = await agent.bind('web', {
      // Longer than the wait: a kill must not pass for an end by SIGTERM.
      terminationGracePeriodSeconds: 60,
      containers: [
        container('command', exec('echo hook')),
        container('http', { httpGet: { path: '/bye', port } }),
        container('bad', exec('exit 3')),
      ],
    });
    for (const name of ['command', 'http', 'bad']) await agent.outputHas(pod, 'up', name);
    await agent.deletePod('web');
    await agent.eventSeen('web: Warning FailedPreStopHook PreStopHook failed');
    await agent.eventSeen('web: Normal Killing Stopping container command');
    await until(
      () =>
        agent.output(pod, 'command').includes('hook\nterm') || agent.podOf('web').then((left) => left === undefined),
      {
        withinMs: 30_000,
        what: 'the pod has terminated',
      },
    );
    expect(paths).toEqual(['/bye']);
    server.close();
  });
});

describe('sidecars', () => {
  it('start in order before the others, and stop after them in reverse order', async () => {
    agent = await execAgent();
    const log = `${agent.rootDirectory}/order`;
    const stopping = (name: string) =>
      shell(
        `trap "sleep 0.1; echo stop ${name} >>${log}; exit 0" TERM; echo start ${name} >>${log}; while :; do sleep 0.05; done`,
      );
    const sidecar = (name: string) => ({ name, restartPolicy: 'Always', ...stopping(name) });
    await agent.bind('web', {
      terminationGracePeriodSeconds: 20,
      initContainers: [sidecar('one'), { name: 'init', ...shell(`echo init >>${log}`) }, sidecar('two')],
      containers: [{ name: 'main', ...stopping('main') }],
    });
    const lines = (prefix: string, count: number) =>
      until(
        () => {
          const text = existsSync(log) ? readFileSync(log, 'utf8') : '';
          const found = text.split('\n').filter((each) => each.startsWith(prefix));
          return found.length === count ? text.trim().split('\n') : undefined;
        },
        { withinMs: 30_000, everyMs: 20, what: `${count} times ${prefix}` },
      );
    const started = await lines('start', 3);
    expect(started.indexOf('init')).toBeLessThan(started.indexOf('start main'));
    await agent.deletePod('web');
    const stops = (await lines('stop', 3)).slice(4);
    expect(stops).toEqual(['stop main', 'stop two', 'stop one']);
  });
});

describe('the termination message of a container', () => {
  it('is what it wrote to its path, or the end of its output', async () => {
    agent = await execAgent();
    const container = (name: string, script: string, more: Record<string, unknown> = {}) => ({
      name,
      ...shell(script),
      ...more,
    });
    await agent.bind('web', {
      containers: [
        container('default', 'echo because >"$NODEKEEPER_TERMINATION_LOG"; exit 2'),
        container('own', `echo chosen >${agent.rootDirectory}/message; exit 2`, {
          terminationMessagePath: `${agent.rootDirectory}/message`,
        }),
        container('logs', 'echo last words; exit 1', { terminationMessagePolicy: 'FallbackToLogsOnError' }),
        container('silent', 'echo last words; exit 1'),
      ],
    });
    const ended = await agent.statusHas('web', 'Failed', (pod) => pod.status?.phase === 'Failed');
    const message = (name: string) => statusOf(ended, name)?.state?.terminated?.message;
    expect(['default', 'own', 'logs', 'silent'].map(message)).toEqual([
      'because\n',
      'chosen\n',
      'last words\n',
      undefined,
    ]);
  });
});

describe('a container that cannot be set up', () => {
  it('reports the reason', async () => {
    agent = await execAgent();
    const volumes = [{ name: 'data', emptyDir: {} }];
    const volumeMounts = [{ name: 'data', mountPath: `${agent.rootDirectory}/data` }];
    const container = (name: string, more: Record<string, unknown>) => ({ name, image: 'none', volumeMounts, ...more });
    await agent.bind('web', {
      volumes,
      containers: [
        container('absent', { command: ['/no/such/program'] }),
        container('nowhere', { command: ['true'], workingDir: '/no/such/directory' }),
      ],
    });
    const ended = await agent.statusHas('web', 'Failed', (pod) => pod.status?.phase === 'Failed');
    expect(statusOf(ended, 'absent')?.state?.terminated).toMatchObject({
      exitCode: 127,
      reason: 'ContainerCannotRun',
      message: 'spawn /no/such/program ENOENT',
    });
    expect(statusOf(ended, 'nowhere')?.state?.terminated).toMatchObject({
      exitCode: 128,
      reason: 'ContainerCannotRun',
    });
  });
});
