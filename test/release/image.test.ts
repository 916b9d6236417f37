/** The image of `nodekeeper serve`, unpacked and run: not as root, and with nothing of this machine but its kernel. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packImage } from '../../scripts/release/image.ts';
import { readManifest } from '../../scripts/release/manifest.ts';
import { buildProgram } from '../../scripts/release/program.ts';

const STEP_MS = 180_000;
const USER = 65_532;
const VERSION = '9.9.9';

function whyNot(): string | undefined {
  if (process.getuid?.() !== 0) return 'not root';
  for (const program of ['umoci', 'apt-get']) if (spawnSync(program, ['--version']).error) return `no ${program}`;
  return undefined;
}
const missing = whyNot();

describe.skipIf(missing !== undefined)(`the image${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  let work: string;
  let archive: string;
  let root: string;

  beforeAll(async () => {
    work = mkdtempSync(join(tmpdir(), 'nodekeeper-image-'));
    const program = join(work, 'program');
    await buildProgram(program, readManifest());
    const architecture = process.arch === 'arm64' ? 'arm64' : 'x64';
    archive = packImage({ work, out: work, version: VERSION, architecture, program });
    const layout = join(work, 'layout');
    mkdirSync(layout);
    execFileSync('tar', ['-xf', archive, '-C', layout]);
    execFileSync('umoci', ['unpack', '--image', `${layout}:nodekeeper:${VERSION}`, join(work, 'bundle')], {
      stdio: 'pipe',
    });
    root = join(work, 'bundle/rootfs');
  }, 2 * STEP_MS);
  afterAll(() => rmSync(work, { recursive: true, force: true }));

  it('has a user without rights, a folder for data, and no shell', () => {
    const { process: started } = JSON.parse(readFileSync(join(work, 'bundle/config.json'), 'utf8')) as {
      process: { user: { uid: number; gid: number }; args: string[]; cwd: string };
    };
    expect(started).toMatchObject({ user: { uid: USER, gid: USER }, cwd: '/data' });
    expect(started.args).toEqual(expect.arrayContaining(['/usr/bin/node', '/opt/nodekeeper/bin/start.mjs', '--data']));
    expect(statSync(join(root, 'data'))).toMatchObject({ uid: USER, gid: USER });
    expect(() => statSync(join(root, 'bin/sh'))).toThrow(/ENOENT/);
    expect(statSync(archive).size).toBeLessThan(80_000_000);
  });

  it('serves a cluster', { timeout: STEP_MS }, async () => {
    const user = ['--userspec', `${USER}:${USER}`];
    const words = ['/usr/bin/node', '/opt/nodekeeper/bin/start.mjs', '--data', '/data/cluster', '--port', '0'];
    const child = spawn('/usr/sbin/chroot', [...user, root, ...words], {
      env: {},
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    try {
      const greeting = await new Promise<string>((resolve) => child.stdout.setEncoding('utf8').once('data', resolve));
      const url = /https:\S+(?= after)/.exec(greeting)?.[0] ?? '';
      const ca = readFileSync(join(root, 'data/cluster/ca.pem'), 'utf8');
      const status = await new Promise((resolve, reject) => {
        request(`${url}/readyz`, { ca }, (answer) => resolve(answer.resume().statusCode))
          .on('error', reject)
          .end();
      });
      expect(status).toBe(200);
    } finally {
      child.kill('SIGTERM');
      await ended;
    }
  });
});
