/** exec, attach, cp and port-forward into pods of a real agent, which has no port, through `nodekeeper serve`. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { Exec, KubeConfig, PortForward, type V1Status } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findKubectls, type Kubectl, kubectlOf, startKubectl } from '../support/kubectl.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { type RealAgent, startRealAgent } from '../support/real-agent.ts';
import { until } from '../support/until.ts';

const kubectls = findKubectls();
/** The oldest and the newest, and those around the change from SPDY to WebSocket. */
const some = kubectls.filter(({ name, minor }) => name !== 'kubectl' && [27, 30, 31, 35].includes(minor));
const one = kubectlOf(33);

const BODY = 'b'.repeat(1_000_000);

describe.skipIf(one === undefined)('kubectl exec', { timeout: 120_000 }, () => {
  let local: LocalForTest;
  let agent: RealAgent;
  /** A pod of the runtime `exec` has the ports of its machine. */
  let web: Server;
  let webPort: number;

  beforeAll(async () => {
    local = await startLocalForTest({ nodes: 0 });
    agent = await startRealAgent(local, { nodeName: 'edge-1', leaseSeconds: 40 });
    await agent.startPod('web', [['main', 'sleep 6000']]);
    await agent.startPod('ticks', [['main', 'i=0; while true; do i=$((i+1)); echo "tick $i"; sleep 0.2; done']]);
    web = createServer((request, response) => {
      response.setHeader('x-path', request.url ?? '');
      response.end(BODY);
    });
    await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve));
    webPort = (web.address() as AddressInfo).port;
  }, 120_000);

  afterAll(async () => {
    web?.close();
    await agent?.stop();
    await local?.stop();
  }, 60_000);

  const run = (kubectl: Kubectl, args: readonly string[], stdin?: string) =>
    startKubectl(kubectl, args, { kubeconfig: local.kubeconfig, ...(stdin === undefined ? {} : { stdin }) }).ended;

  it.each(kubectls)('$name runs a command with its output, its errors and its exit code', async (kubectl) => {
    const result = await run(kubectl, ['exec', 'web', '--', 'sh', '-c', 'echo out; echo err >&2; exit 3']);
    expect(result).toMatchObject({
      stdout: 'out\n',
      stderr: 'err\ncommand terminated with exit code 3\n',
      exitCode: 3,
    });
  });

  it('the JavaScript client runs a command, and forwards a port', async () => {
    const config = new KubeConfig();
    config.loadFromFile(local.kubeconfig);
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const input = Readable.from(['input']);
    const status = await new Promise<V1Status>((resolve, reject) => {
      const command = ['sh', '-c', 'cat; echo err >&2; exit 3'];
      new Exec(config).exec('default', 'web', 'main', command, stdout, stderr, input, false, resolve).catch(reject);
    });
    expect([stdout.read()?.toString(), stderr.read()?.toString()]).toEqual(['input', 'err\n']);
    expect([status.reason, status.details?.causes?.[0]?.message]).toEqual(['NonZeroExitCode', '3']);

    const [answer, faults, request] = [new PassThrough(), new PassThrough(), new PassThrough()];
    await new PortForward(config).portForward('default', 'web', [webPort], answer, faults, request);
    request.write('GET /js HTTP/1.0\r\nHost: x\r\n\r\n');
    let text = '';
    answer.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    await until(() => text.endsWith(BODY.slice(-1_000)) && text.length > BODY.length, {
      withinMs: 30_000,
      what: 'a page',
    });
    expect(text).toContain('x-path: /js');
  });

  it.each(kubectls)('$name sends input to its end', async (kubectl) => {
    const text = 'x'.repeat(3_000_000);
    const result = await run(kubectl, ['exec', '-i', 'web', '--', 'wc', '-c'], text);
    expect(result).toMatchObject({ stdout: `${text.length}\n`, stderr: '', exitCode: 0 });
  });

  it.each(some)('$name reads 20 MB of output without a gap', async (kubectl) => {
    const script = 'seq 1 2500000; seq 1 10 >&2';
    const { stdout, stderr, exitCode } = await run(kubectl, ['exec', 'web', '--', 'sh', '-c', script]);
    expect([exitCode, stderr.split('\n').length, stdout.length]).toEqual([0, 11, 18_888_896]);
    expect(stdout.endsWith('\n2499999\n2500000\n')).toBe(true);
  });

  it.each(some)('$name has a terminal of its size', async (kubectl) => {
    const script = `sleep 1; tty; stty size; read line; echo got $line`;
    const command = `stty rows 33 cols 101; exec ${kubectl.path} exec -it web -- sh -c '${script}'`;
    const terminal = { ...kubectl, path: '/usr/bin/script' };
    const { stdout, exitCode } = await run(terminal, ['-qec', command, '/dev/null'], 'hello\n');
    expect(stdout).toMatch(/\/dev\/pts\/\d+\r?\n/);
    expect(stdout).toContain('33 101');
    expect(stdout).toContain('got hello');
    expect(exitCode).toBe(0);
  });

  it.each(some)('$name attaches to the output', async (kubectl) => {
    const attached = startKubectl(kubectl, ['attach', 'ticks'], { kubeconfig: local.kubeconfig });
    await attached.untilLines(5);
    attached.interrupt();
    await attached.ended;
    const numbers = [...attached.stdout().matchAll(/^tick (\d+)$/gm)].map(([, number]) => Number(number));
    expect(numbers.slice(0, 4)).toEqual([0, 1, 2, 3].map((each) => (numbers[0] ?? 0) + each));
  });

  it.each(some)('$name forwards a port', async (kubectl) => {
    const forwarding = startKubectl(kubectl, ['port-forward', 'web', `:${webPort}`], { kubeconfig: local.kubeconfig });
    await forwarding.untilLines(1);
    const port = /127\.0\.0\.1:(\d+) ->/.exec(forwarding.stdout())?.[1] ?? forwarding.stderr();
    const answers = await Promise.all(
      ['/a', '/b', '/c'].map(async (path) => {
        const answer = await fetch(`http://127.0.0.1:${port}${path}`);
        return [answer.headers.get('x-path'), (await answer.text()) === BODY];
      }),
    );
    expect(answers).toEqual([
      ['/a', true],
      ['/b', true],
      ['/c', true],
    ]);
    forwarding.interrupt();
    await forwarding.ended;
  });

  it.each(some)('$name reports a port without a listener', async (kubectl) => {
    const forwarding = startKubectl(kubectl, ['port-forward', 'web', ':1'], { kubeconfig: local.kubeconfig });
    await forwarding.untilLines(1);
    const port = /127\.0\.0\.1:(\d+) ->/.exec(forwarding.stdout())?.[1] ?? '';
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
    await until(() => forwarding.stderr().includes('ECONNREFUSED'), { withinMs: 30_000, what: 'the reason' });
    forwarding.interrupt();
    await forwarding.ended;
  });

  it.each(some)('$name copies a file there and back', async (kubectl) => {
    const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-cp-'));
    try {
      const content = 'line\n'.repeat(400_000);
      writeFileSync(join(directory, 'file'), content);
      const there = await run(kubectl, ['cp', join(directory, 'file'), `web:${directory}/copy`]);
      expect(there).toMatchObject({ exitCode: 0 });
      expect(readFileSync(join(directory, 'copy'), 'utf8')).toBe(content);
      const back = await run(kubectl, ['cp', `web:${directory}/copy`, join(directory, 'back')]);
      expect(back).toMatchObject({ exitCode: 0 });
      expect(readFileSync(join(directory, 'back'), 'utf8')).toBe(content);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
