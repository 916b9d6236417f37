/** `nodekeeper serve` as its operator meets it: bad input, kills, backup, check, restore, its end. */
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { get as httpsGet } from 'node:https';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { makeAuthority, makeServerCertificate } from '../../shared/host/certificate.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
let dataDir: string;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'nk-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
});

/** A command of `nodekeeper`, to its end. */
function nodekeeper(...args: readonly string[]): Promise<{ exitCode: number; output: string }> {
  return new Promise((resolve) => {
    const options = { cwd: ROOT, timeout: 60_000 };
    execFile(process.execPath, [join(ROOT, 'cli/bin/nodekeeper.ts'), ...args], options, (error, stdout, stderr) =>
      resolve({ exitCode: error === null ? 0 : Number(error.code ?? 1), output: `${stdout}${stderr}` }),
    );
  });
}

/** `nodekeeper serve` that writes no kubeconfig of its own. */
function serve(...args: readonly string[]): { output(): string } {
  const child = spawn(process.execPath, [join(ROOT, 'cli/bin/nodekeeper.ts'), 'serve', ...args], { cwd: ROOT });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  onTestFinished(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  return { output: () => output };
}

/** Files of a certificate for this name, and the options that name them. */
async function certificateFiles(directory: string, name: string): Promise<readonly string[]> {
  const nowMs = Date.now();
  const authority = await makeAuthority({ commonName: 'site', nowMs, validDays: 1 });
  const { certificatePem, privateKeyPem } = await makeServerCertificate(authority, {
    names: [name],
    nowMs,
    validDays: 1,
  });
  writeFileSync(join(directory, 'tls.crt'), certificatePem);
  writeFileSync(join(directory, 'tls.key'), privateKeyPem);
  return ['--tls-cert', join(directory, 'tls.crt'), '--tls-key', join(directory, 'tls.key')];
}

/** The body of an answer; the certificate is for another name. */
const get = (url: string, token: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = { rejectUnauthorized: false, headers: { authorization: `Bearer ${token}` } };
    httpsGet(url, options, (answer) => text(answer).then(resolve, reject)).once('error', reject);
  });

async function started(options: { readonly port?: number } = {}): Promise<LocalForTest> {
  const local = await startLocalForTest({ nodes: 0, dataDir, ...options });
  onTestFinished(() => local.stop());
  return local;
}

const create = async ({ client }: LocalForTest, name: string): Promise<void> => {
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } };
  const answer = await client.send({ method: 'POST', path: '/api/v1/namespaces/default/configmaps', body });
  expect(answer).toMatchObject({ kind: 'answered', status: 201 });
};
const namesIn = async ({ client }: LocalForTest): Promise<readonly string[]> => {
  const answer = await client.send({ method: 'GET', path: '/api/v1/namespaces/default/configmaps' });
  if (answer.kind !== 'answered') throw new Error('no answer', { cause: answer.cause });
  const { items } = answer.body as { items: readonly { metadata: { name: string } }[] };
  return items.map(({ metadata }) => metadata.name).filter((name) => name !== 'kube-root-ca.crt');
};

describe('nodekeeper serve', { timeout: 120_000 }, () => {
  it('keeps every answered write when it is killed, and ends without a fault when asked', async () => {
    const first = await started();
    const names = Array.from({ length: 40 }, (_, index) => `c${String(index).padStart(2, '0')}`);
    await Promise.all(names.map((name) => create(first, name)));
    await first.kill();
    const second = await started();
    expect(await namesIn(second)).toEqual(names);
    await second.stop();
    expect(second.output()).not.toMatch(/error/);
  });

  it('backs up while it runs, checks, and restores what was backed up', async () => {
    const backup = join(dataDir, 'backup.db');
    const running = await started();
    await create(running, 'before');
    expect(await nodekeeper('backup', backup, '--data', dataDir)).toMatchObject({
      exitCode: 0,
      output: expect.stringMatching(/backup\.db has \d+ rows of objects/),
    });
    expect((await nodekeeper('backup', backup, '--data', dataDir)).output).toMatch(/exists: name a file that does not/);
    await create(running, 'after');
    expect(await nodekeeper('check', '--data', dataDir)).toMatchObject({
      exitCode: 0,
      output: expect.stringMatching(/is sound/),
    });
    expect(await nodekeeper('restore', backup, '--data', dataDir)).toMatchObject({
      exitCode: 1,
      output: expect.stringContaining(`is in use by process ${running.pid}`),
    });
    await running.stop();
    expect(await nodekeeper('restore', backup, '--data', dataDir)).toMatchObject({
      exitCode: 0,
      output: expect.stringMatching(/nodekeeper\.db has .*; the one before is .*before-/),
    });
    expect(await nodekeeper('check', '--data', dataDir)).toMatchObject({ exitCode: 0 });
    const restored = await started();
    expect(await namesIn(restored)).toEqual(['before']);
  });

  it('is kept for its owner, also the database', async () => {
    await started();
    for (const file of ['data/nodekeeper.db', 'data/nodekeeper.db-wal', 'serve.sock']) {
      expect(statSync(join(dataDir, file)).mode & 0o077, file).toBe(0);
    }
  });

  it('a watch shows a change without waiting for the next read of the log', async () => {
    const local = await started();
    const { client } = local;
    const listed = await client.send({ method: 'GET', path: '/api/v1/namespaces/default/configmaps' });
    const { resourceVersion } = (listed as { body: { metadata: { resourceVersion: string } } }).body.metadata;
    const path = `/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1&resourceVersion=${resourceVersion}`;
    const watching = client.send({ method: 'GET', path });
    await create(local, 'seen');
    // The client reads a whole answer, which is one event: more lines would be no JSON.
    expect(await watching).toMatchObject({
      kind: 'answered',
      body: { type: 'ADDED', object: { metadata: { name: 'seen' } } },
    });
  });

  it.each([
    { what: 'another address', args: (file: string) => ['--listen', '127.0.0.2', '--tokens', file] },
    { what: 'all addresses', args: (file: string) => ['--listen', '0.0.0.0', '--tokens', file] },
  ])('its own probe reaches it at $what, with a certificate of another name', async ({ args }) => {
    const tokens = join(dataDir, 'users.json');
    const token = 'a'.repeat(43);
    const sha256 = createHash('sha256').update(token).digest('hex');
    const files = await certificateFiles(dataDir, 'edge.example');
    writeFileSync(tokens, JSON.stringify([{ sha256, user: 'ada', groups: ['system:masters'] }]));
    const served = serve('--data', join(dataDir, 'd'), '--port', '0', '--log', 'json', ...args(tokens), ...files);
    const url = await until(async () => /serves (https:\/\/\S+)/.exec(served.output())?.[1], {
      withinMs: 30_000,
      what: 'the address',
    });
    const acceptedProbes = async (): Promise<number> => {
      const body = await get(`${url.replace('0.0.0.0', '127.0.0.1')}/metrics?scope=controller`, token);
      return Number(/nodekeeper_probes\{result="accepted"\} (\d+)/.exec(body)?.[1] ?? 0);
    };
    await until(async () => ((await acceptedProbes()) > 0 ? true : undefined), {
      withinMs: 30_000,
      everyMs: 500,
      what: `a probe that was accepted\n${served.output()}`,
    });
    expect(served.output()).not.toContain('probe heartbeat failed');
  });

  it('refuses bad input in one line, with exit code 1, and changes nothing', async () => {
    const running = await started();
    const other = mkdtempSync(join(tmpdir(), 'nk-'));
    onTestFinished(() => rmSync(other, { recursive: true, force: true }));
    const port = new URL(running.access.url).port;
    const policy = join(other, 'policy.yaml');
    writeFileSync(policy, 'nodeMonitorPeriodSeconds: 7\n');
    const pem = join(other, 'cert.pem');
    writeFileSync(pem, 'no certificate\n');
    for (const [args, expected] of [
      [['--data', dataDir], `is in use by process ${running.pid}`],
      [['--ephemeral', '--port', port], `port ${port} is in use: choose another with --port`],
      [['--ephemeral', '--policy', policy], 'policy.yaml:1 nodeMonitorPeriodSeconds'],
      [['--ephemeral', '--policy', join(other, 'none.yaml')], 'none.yaml cannot be read'],
      [['--ephemeral', '--tls-cert', pem, '--tls-key', pem], 'cert.pem has no certificate in PEM'],
      [['--ephemeral', '--listen', '0.0.0.0'], '--listen 0.0.0.0 is possible only with --tokens FILE'],
    ] as const) {
      const { exitCode, output } = await nodekeeper('serve', ...args);
      expect({ args, exitCode, output }).toEqual({ args, exitCode: 1, output: expect.stringContaining(expected) });
      // On a busy machine it says before that it still starts.
      const lines = output
        .trim()
        .split('\n')
        .filter((line) => !line.endsWith(' s so far'));
      expect(lines, output).toHaveLength(1);
    }
  });

  it('refuses a database that is missing, damaged or of another program, and never starts empty', async () => {
    await (await started()).stop();
    const database = join(dataDir, 'data/nodekeeper.db');
    const refused = async (expected: RegExp): Promise<void> => {
      const { exitCode, output } = await nodekeeper('serve', '--data', dataDir, '--port', '0');
      expect({ exitCode, output }).toEqual({ exitCode: 1, output: expect.stringMatching(expected) });
    };
    truncateSync(database, 5_000);
    await refused(/nodekeeper\.db/);
    writeFileSync(database, 'a text of somebody else, long enough to be no header of a database at all\n'.repeat(10));
    await refused(/nodekeeper\.db/);
    rmSync(database);
    await refused(/nodekeeper\.db does not exist, although .* of its cluster does/);
  });

  it('starts in a directory with a path that is too long for a socket, and says what is missing', async () => {
    dataDir = join(dataDir, 'long'.repeat(30));
    const local = await started();
    await create(local, 'a');
    expect(local.output()).toContain('nodekeeper backup and check cannot reach this process');
  });

  it('ends in order when a signal comes during its start', async () => {
    const args = ['cli/bin/nodekeeper.ts', 'serve', '--data', dataDir, '--port', '0'];
    const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    await until(() => (statSync(join(dataDir, 'data'), { throwIfNoEntry: false }) === undefined ? undefined : true), {
      withinMs: 30_000,
      what: 'the beginning of the start',
    });
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });
});
