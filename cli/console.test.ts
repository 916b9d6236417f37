import { expect, it } from 'vitest';
import { type MemoryApi, startMemoryApi } from '../test/support/memory-api.ts';
import { consoleCommand } from './console.ts';

/** What the command prints, and what `use` sees while it runs. */
async function run(args: readonly string[], use: (address: URL) => Promise<void> = async () => {}): Promise<string[]> {
  const lines: string[] = [];
  const io = { environment: {}, nowMs: Date.now(), print: (line: string) => void lines.push(line) };
  await consoleCommand(args, io, () => use(new URL(lines[0]!.slice(lines[0]!.indexOf('http')))));
  return lines;
}

async function withApi(use: (api: MemoryApi) => Promise<void>): Promise<void> {
  const api = await startMemoryApi();
  try {
    await use(api);
  } finally {
    await api.stop();
  }
}

it('serves the page until it is interrupted, and not after', () =>
  withApi(async (api) => {
    let used: URL | undefined;
    const lines = await run(['--kubeconfig', api.kubeconfig], async (address) => {
      used = address;
      expect(address.hostname).toBe('127.0.0.1');
      const answer = await fetch(address);
      expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('<title>Nodekeeper</title>')]);
      const refused = await fetch(new URL('/cluster', address));
      expect([refused.status, await refused.text()]).toEqual([401, 'open the address that the command printed']);
    });
    expect(lines[0]).toMatch(/^The console is at http:\/\/127\.0\.0\.1:\d+\/#token=[\w-]{43}$/);
    await expect(fetch(used!)).rejects.toThrow('fetch failed');
  }));

it('explains and advises with the credential of the kubeconfig', () =>
  withApi(async (api) => {
    await run(['--kubeconfig', api.kubeconfig, '--context', 'viewer'], async (address) => {
      const headers = { origin: address.origin, 'content-type': 'application/json' };
      const body = JSON.stringify({ token: address.hash.slice('#token='.length) });
      const session = await fetch(new URL('/session', address), { method: 'POST', headers, body });
      const cookie = session.headers.get('set-cookie')!.split(';')[0]!;
      const read = async (path: string) => await (await fetch(new URL(path, address), { headers: { cookie } })).text();
      expect(await read('/explain/node/n1')).toMatch(/^no decision about node n1 since /);
      expect(JSON.parse(await read('/advice'))).toEqual({ limitPer1000NodeDays: 1, profiles: [] });
      expect(JSON.parse(await read('/cluster'))).toMatchObject({ cluster: 'viewer', rules: expect.any(Array) });
    });
  }));

it('refuses a port that is in use, or none', () =>
  withApi(async (api) => {
    const args = ['--kubeconfig', api.kubeconfig, '--port'];
    await run([...args, '0'], async ({ port }) => {
      await expect(run([...args, port])).rejects.toThrow(`port ${port} is in use`);
    });
    await expect(run([...args, '65536'])).rejects.toThrow('--port must be a number from 0 to 65535');
    await expect(run([...args, 'x'])).rejects.toThrow('--port must be a number from 0 to 65535');
  }));

it('refuses to start without a kubeconfig', async () => {
  await expect(run(['--kubeconfig', '/nowhere'])).rejects.toThrow('no kubeconfig at /nowhere');
});
