import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { freePort, listenOnLoopback } from '../../../shared/host/loopback.ts';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { startTlsServer, startTunnelProxy } from '../../../test/support/tls-server.ts';
import type { AgentConfig } from '../../config.ts';
import { writeEnrolment } from '../identity/enrolment-file.ts';
import { machineKey } from '../identity/key-file.ts';
import { mountMode } from '../runtime-exec/isolation.ts';
import { ANSWER_BYTES_MAX, askServer } from './ask-server.ts';
import {
  readAgent,
  readCgroups,
  readDisk,
  readEndpoint,
  readKey,
  readRuntime,
  readShutdown,
  readToken,
  readVolumeLimits,
} from './measure.ts';

async function api(answer: (path: string, token: string) => { readonly status?: number; readonly body: string }) {
  const asked: string[] = [];
  const server = await startTlsServer((request, response) => {
    const token = request.headers.authorization ?? '';
    asked.push(`${request.method} ${request.url} ${token}`.trim());
    const { status = 200, body } = answer(request.url ?? '', token);
    response.statusCode = status;
    response.setHeader('date', new Date(Date.now() + 3_600_000).toUTCString());
    response.end(body);
  });
  onTestFinished(() => server.close());
  const { url: endpoint, certificateAuthority } = server;
  return { asked, endpoint, certificateAuthority };
}

describe('a question to a server', () => {
  it('is answered with the status, the body, the clock and the certificate of the server', async () => {
    const { endpoint, certificateAuthority, asked } = await api(() => ({ status: 418, body: '{"a":1}' }));
    const answer = await askServer({ endpoint: `${endpoint}/prefix/`, path: '/version', certificateAuthority });
    expect(answer).toMatchObject({ kind: 'answered', status: 418, body: { a: 1 } });
    if (answer.kind !== 'answered') throw new Error(answer.kind);
    expect(answer.tookMs).toBeGreaterThan(0);
    expect(answer.tookMs).toBeLessThan(60_000);
    expect(Math.abs((answer.clockAheadMs ?? 0) - 3_600_000)).toBeLessThan(60_000);
    expect((answer.certificateEndsMs ?? 0) > Date.now()).toBe(true);
    expect(answer.certificateFingerprint).toMatch(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/);
    expect(asked).toEqual(['GET /prefix/version']);
  });

  it('has no body that is no JSON, or longer than it reads', async () => {
    const { endpoint, certificateAuthority } = await api((path) => ({
      body: path === '/long' ? `"${'x'.repeat(4 * ANSWER_BYTES_MAX)}"` : '<html>',
    }));
    for (const path of ['/html', '/long'])
      expect(await askServer({ endpoint, path, certificateAuthority })).toMatchObject({ status: 200, body: undefined });
  });

  it('fails without an answer in ten seconds', async () => {
    const asked = Promise.withResolvers<void>();
    const { url: endpoint, certificateAuthority, close } = await startTlsServer(() => asked.resolve());
    onTestFinished(close);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const answer = askServer({ endpoint, path: '/', certificateAuthority });
    await asked.promise;
    vi.advanceTimersByTime(10_000);
    expect(await answer).toEqual({ kind: 'failed', code: 'ETIMEDOUT', message: 'no answer in 10000 ms' });
  });

  it('fails when the answer is cut off', async () => {
    const {
      url: endpoint,
      certificateAuthority,
      close,
    } = await startTlsServer(({ socket }, response) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('{', () => socket.destroy());
    });
    onTestFinished(close);
    expect(await askServer({ endpoint, path: '/', certificateAuthority })).toMatchObject({ code: 'ECONNRESET' });
  });

  it('fails with the code of the fault', async () => {
    const { endpoint } = await api(() => ({ body: '{}' }));
    expect(await askServer({ endpoint, path: '/' })).toMatchObject({
      kind: 'failed',
      code: expect.stringMatching(/SIGNATURE|CERT/),
    });
    expect(await askServer({ endpoint, path: '/', trustsAny: true })).toMatchObject({ kind: 'answered', body: {} });
    const closed = `https://127.0.0.1:${await freePort()}`;
    expect(await askServer({ endpoint: closed, path: '/' })).toMatchObject({ kind: 'failed', code: 'ECONNREFUSED' });
    expect(await askServer({ endpoint: 'no url', path: '/' })).toMatchObject({
      kind: 'failed',
      code: 'ERR_INVALID_URL',
    });
    const proxy = await startTunnelProxy(407);
    onTestFinished(() => proxy.close());
    const environment = { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` };
    expect(await askServer({ endpoint: 'https://api.example', path: '/', environment })).toEqual({
      kind: 'failed',
      code: '',
      message: expect.stringContaining('407'),
    });
  });
});

it('the endpoint has a version, or it is unknown', async () => {
  const bodies: Record<string, string> = { '/a/version': '{"gitVersion":"v1.34.0"}', '/b/version': '{}' };
  const { endpoint, certificateAuthority } = await api((path) => ({ body: bodies[path] ?? '[]' }));
  const versionOf = async (prefix: string) => {
    const reading = await readEndpoint({ endpoint: `${endpoint}${prefix}`, certificateAuthority }, {});
    return reading.kind === 'answered' ? reading.serverVersion : reading.code;
  };
  expect([await versionOf('/a'), await versionOf('/b'), await versionOf('/c')]).toEqual([
    ...['v1.34.0', 'unknown', 'unknown'],
  ]);
  expect(await readEndpoint({ endpoint: `https://127.0.0.1:${await freePort()}` }, {})).toMatchObject({
    kind: 'failed',
  });
});

const OWNER = { nodeName: 'n1', clusterId: 'c' };

describe('the credentials of a machine', () => {
  it('are those of its key, if that is enrolled, and their connection is closed', async () => {
    const rootDirectory = folderForTest();
    const { keyId } = await machineKey(rootDirectory);
    await writeEnrolment(rootDirectory, { ...OWNER, keyId, bootstrapTokenId: 'b', nodeLabels: {} });
    const closed = Promise.withResolvers<void>();
    const {
      url: endpoint,
      certificateAuthority,
      close,
    } = await startTlsServer(({ socket, headers }, response) => {
      socket.once('close', () => closed.resolve());
      response.end(JSON.stringify({ message: headers.authorization?.slice(0, 9) }));
    });
    onTestFinished(close);
    const config = { ...OWNER, endpoint, certificateAuthority, rootDirectory } as AgentConfig;
    expect(await readToken(config, { kind: 'key', isEnrolled: true }, {})).toMatchObject({ status: 200 });
    await closed.promise;
  });

  it('are a token, a key, or none, and what is wrong with the key', async () => {
    const rootDirectory = folderForTest();
    expect(await readKey({ token: 't', rootDirectory })).toEqual({ kind: 'token' });
    expect(await readKey({ rootDirectory })).toEqual({ kind: 'none', hasBootstrapToken: false });
    expect(await readKey({ rootDirectory, bootstrapToken: 'b' })).toEqual({ kind: 'none', hasBootstrapToken: true });
    await machineKey(rootDirectory);
    expect(await readKey({ rootDirectory })).toEqual({ kind: 'key', isEnrolled: false });
    await writeEnrolment(rootDirectory, { ...OWNER, keyId: 'k', bootstrapTokenId: 'b', nodeLabels: {} });
    expect(await readKey({ rootDirectory })).toEqual({ kind: 'key', isEnrolled: true });
    const broken = folderForTest();
    await machineKey(broken);
    writeFileSync(join(broken, 'node-key.pem'), 'broken');
    expect(await readKey({ rootDirectory: broken })).toMatchObject({ kind: 'unusable', message: expect.any(String) });
  });

  it('read the Node with what the machine has, and enrol nothing', async () => {
    const conditions = [{ type: 'Other' }, { type: 'Ready', message: 'all is well' }];
    const { endpoint, certificateAuthority, asked } = await api((path, token) =>
      token === 'Bearer secret'
        ? { body: JSON.stringify({ metadata: {}, status: path.endsWith('/n1') ? { conditions } : {} }) }
        : { status: 401, body: '{"message":"Unauthorized"}' },
    );
    const config = (more: Partial<AgentConfig>) =>
      ({ endpoint, certificateAuthority, nodeName: 'n1', clusterId: 'c', ...more }) as AgentConfig;
    const read = (more: Partial<AgentConfig>) => readToken(config(more), { kind: 'token' }, {});
    expect(await read({ token: 'secret' })).toEqual({ status: 200, message: '200', readyMessage: 'all is well' });
    expect(await read({ token: 'secret', nodeName: 'n2' })).toEqual({ status: 200, message: '200' });
    expect(await read({ token: 'other' })).toEqual({ status: 401, message: '401 Unauthorized' });
    const closed = `https://127.0.0.1:${await freePort()}`;
    expect(await read({ token: 'secret', endpoint: closed })).toMatchObject({
      ...{ status: 0, message: expect.stringContaining('ECONNREFUSED') },
    });
    asked.length = 0;
    for (const key of [
      { kind: 'none', hasBootstrapToken: true },
      { kind: 'key', isEnrolled: false },
      { kind: 'unusable', message: 'x' },
    ] as const)
      expect(await readToken(config({ bootstrapToken: 'b' }), key, {})).toBeUndefined();
    expect(asked).toEqual([]);
  });
});

it('a disk has the space that pods may use', async () => {
  const root = folderForTest();
  const reading = await readDisk(root);
  if (reading.kind !== 'measured') throw new Error(reading.message);
  expect(reading.capacityBytes).toBeGreaterThan(reading.availableBytes);
  expect(reading.availableBytes % 512).toBe(0);
  expect(reading.capacityBytes).toBeGreaterThan(1_000_000);
  expect(await readDisk(join(root, 'none'))).toMatchObject({
    kind: 'failed',
    message: expect.stringContaining('ENOENT'),
  });
});

it('a machine may have no directory for pods', () => {
  expect(readCgroups({ fileRoot: '/', cgroupRoot: '/no/such/root' })).toMatchObject({ kind: 'missing' });
});

it('a directory for pods has controllers, and may not be writable', () => {
  const fileRoot = folderForTest();
  const directory = join(fileRoot, 'sys/fs/cgroup');
  mkdirSync(join(fileRoot, 'proc/self'), { recursive: true });
  mkdirSync(directory, { recursive: true });
  const mount = '30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n';
  writeFileSync(join(fileRoot, 'proc/self/mountinfo'), mount);
  writeFileSync(join(directory, 'cgroup.controllers'), 'cpu io memory\n');
  const found = { kind: 'found', directory, missing: ['cpuset', 'pids'] };
  expect(readCgroups({ fileRoot, cgroupRoot: '' })).toEqual({ ...found, fault: expect.stringContaining('ENOENT') });
  writeFileSync(join(directory, 'cgroup.procs'), '');
  expect(readCgroups({ fileRoot, cgroupRoot: '' })).toEqual(found);
});

it('a machine without a bus of the system cannot delay its shutdown', async () => {
  const bus = join(folderForTest(), 'none');
  expect(await readShutdown(`unix:path=${bus}`)).toEqual({ kind: 'failed', message: expect.stringContaining(bus) });
});

it('the limits of volumes are those of the directory of claims, or of the one that will have it', async () => {
  const root = folderForTest();
  const asked: string[] = [];
  const quotas = {
    limit: async () => undefined,
    release: async () => {},
    fault: async (directory: string) => {
      asked.push(directory);
      if (asked.length > 1) throw new Error('xfs_quota: a fault');
      return undefined;
    },
  };
  const config = { rootDirectory: root, runtime: 'exec' } as const;
  expect(await readVolumeLimits({ ...config, runtime: 'none' }, quotas)).toBeUndefined();
  expect(await readVolumeLimits(config, quotas)).toEqual({ kind: 'limited' });
  mkdirSync(join(root, 'claims'));
  expect(await readVolumeLimits(config, quotas)).toMatchObject({ kind: 'none', why: 'xfs_quota: a fault' });
  expect(asked).toEqual([root, join(root, 'claims')]);
});

it('the runtime is none, or processes, with the mounts that they have', async () => {
  expect(await readRuntime('none')).toEqual({ kind: 'none' });
  expect(await readRuntime('exec')).toEqual({ kind: 'exec', mounts: mountMode() });
});

describe('the running agent', () => {
  it('is healthy, unhealthy with a reason, or absent', async () => {
    let status = 200;
    const asked: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url);
      response.statusCode = status;
      response.end('all of it\n');
    });
    const port = await listenOnLoopback(server);
    expect(await readAgent(port)).toEqual({ kind: 'healthy' });
    status = 500;
    expect(await readAgent(port)).toEqual({ kind: 'unhealthy', message: 'all of it' });
    expect(asked).toEqual(['/healthz', '/healthz']);
    await new Promise((resolve) => server.close(resolve));
    expect(await readAgent(await freePort())).toMatchObject({
      ...{ kind: 'absent', message: expect.stringContaining('ECONNREFUSED') },
    });
    expect(await readAgent(0)).toEqual({ kind: 'unknown' });
  });

  it('is absent without a whole answer in ten seconds, and no long answer is kept', async () => {
    const asked = Promise.withResolvers<void>();
    let answer = (_: ServerResponse) => asked.resolve();
    const server = createServer((_, response) => answer(response));
    onTestFinished(() => void server.close());
    const port = await listenOnLoopback(server);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const late = readAgent(port);
    await asked.promise;
    vi.advanceTimersByTime(10_000);
    expect(await late).toEqual({ kind: 'absent', message: 'no answer in 10000 ms' });
    answer = (response) => response.writeHead(200).write('x', () => response.destroy());
    expect(await readAgent(port)).toMatchObject({ kind: 'absent' });
    answer = (response) => void response.writeHead(500).end('x'.repeat(3 * ANSWER_BYTES_MAX));
    expect(await readAgent(port)).toEqual({ kind: 'unhealthy', message: 'x'.repeat(ANSWER_BYTES_MAX) });
  });
});

describe('the runtime podman', () => {
  const found = async (script: string | undefined) => {
    const folder = folderForTest();
    if (script !== undefined) writeFileSync(join(folder, 'podman'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    vi.stubEnv('PATH', script === undefined ? folder : `${folder}:${process.env['PATH']}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    return readRuntime('podman');
  };

  it('has a version', async () => {
    const script = '[ "$*" = "version --format {{.Client.Version}}" ] && echo " 4.3.1 "';
    expect(await found(script)).toEqual({ kind: 'podman', version: '4.3.1', message: '' });
  });

  it('fails with what it says, or is not there', async () => {
    expect(await found('echo " no storage " >&2; exit 1')).toEqual({
      kind: 'podman',
      version: undefined,
      message: 'no storage',
    });
    expect(await found(undefined)).toEqual({ kind: 'podman', version: undefined, message: 'spawn podman ENOENT' });
  });
});
