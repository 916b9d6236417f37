/** .ci/run on a machine that has nothing, with stand-ins for the programs that change one; and what files share. */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ALONE } from '../vitest.config.ts';
import { LONGEST } from './support/longest-first.ts';
import { NEEDED_PACKAGES } from './support/mock-system-bus.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const RUN = join(ROOT, '.ci/run');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodekeeper-ci-run-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** What it calls: one line per call of apt-get and npm. @param failing how a call begins that fails */
function callsOf(
  present: readonly string[],
  { failing, status: expected }: { readonly failing?: string; readonly status: number } = { status: 0 },
): string[] {
  const calls = join(folder, 'calls');
  const program = (name: string, text: string): void => {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(folder, name), 0o755);
  };
  for (const name of ['apt-get', 'npm']) {
    const ends = failing === undefined ? '' : `\ncase "${name} $*" in '${failing}'*) exit 1 ;; esac`;
    program(name, `echo "${name} $* CI=$CI" >> '${calls}'${ends}`);
  }
  for (const name of present) program(name, ':');
  for (const name of ['bash', 'dirname']) symlinkSync(join('/usr/bin', name), join(folder, name));
  // Hides the modules, where this machine has them.
  for (const name of ['dbusmock', 'kubernetes']) {
    writeFileSync(join(folder, `${name}.py`), present.includes(name) ? '' : 'raise ImportError\n');
  }
  const { status, stderr } = spawnSync('/usr/bin/bash', [RUN], {
    env: { PATH: folder, WINE_DIRECTORY: folder, PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' },
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([expected, '']);
  return readFileSync(calls, 'utf8').trim().split('\n');
}

const CI = 'npm ci --no-audit --no-fund CI=';
const TEST = 'npm test CI=true';
const SITE = 'npm run --silent site -- --check CI=';
const WINE = 'npm run --silent wine CI=';
const OTHERS =
  'npm install --no-save --ignore-scripts --no-audit --no-fund aws-lambda-ric@4.0.2 @cloud-copilot/iam-simulate@0.1.173';

it('installs every program that a test would be skipped without', () => {
  const calls = callsOf([]);
  // Two programs install side by side. The tests begin when both have installed everything.
  const ofApt = calls.filter((call) => call.startsWith('apt-get '));
  const [ci, others = '', ...rest] = calls.filter((call) => !ofApt.includes(call) && call !== WINE);
  const [update, install = '', ...more] = ofApt;
  expect(calls.indexOf(WINE)).toBeGreaterThan(calls.indexOf(install));
  expect([update, more, ci]).toEqual(['apt-get update -qq CI=', [], CI]);
  expect(rest.toSorted()).toEqual([SITE, TEST]);
  expect([calls.at(-2), calls.at(-1)].toSorted()).toEqual([SITE, TEST]);
  expect(others.startsWith(OTHERS)).toBe(true);
  expect([...others.matchAll(/kubectl-v(\d+)@\d/g)].map(([, minor]) => Number(minor))).toEqual([
    27, 28, 29, 30, 31, 32, 33,
  ]);
  const packages = install.replace(/^apt-get install .*--no-install-recommends | CI=$/g, '').split(' ');
  expect(packages.toSorted()).toEqual(
    [
      'kubernetes-client',
      'default-jre-headless',
      'prometheus',
      'chromium',
      'fonts-dejavu-core',
      'python3-kubernetes',
      'wine64',
      'umoci',
      'minisign',
      'nftables',
      'iproute2',
      ...NEEDED_PACKAGES,
    ].toSorted(),
  );
});

it('runs no test when a program cannot be installed', () => {
  const failing = callsOf([], { status: 1, failing: 'apt-get' });
  expect(failing).not.toContain(TEST);
});

it('fails when the site does, and runs the tests nevertheless', () => {
  const calls = callsOf(['kubectl'], { status: 1, failing: 'npm run --silent site' });
  expect(calls).toContain(TEST);
});

it('installs nothing but packages where all of them are there', () => {
  const present = [
    'kubectl',
    'kubectl.1.27',
    'java',
    'dbus-daemon',
    'systemd-inhibit',
    'promtool',
    'chromium',
    'dbusmock',
    'kubernetes',
    'wine64',
    'umoci',
    'minisign',
    'nft',
    'ip',
  ];
  const calls = callsOf(present);
  expect(calls).toContain(WINE);
  const [ci, others = '', ...rest] = calls.filter((call) => call !== WINE);
  expect([ci, ...rest.toSorted()]).toEqual([CI, SITE, TEST]);
  expect(others.startsWith(OTHERS)).toBe(true);
  expect(others).not.toContain('kubectl');
});

it('runs every file that replaces a module in a worker of its own', () => {
  const files = spawnSync('git', ['grep', '-l', `^vi\\.mock(`, '--', '*.test.ts'], { cwd: ROOT, encoding: 'utf8' });
  const replacing = files.stdout.trim().split('\n');
  expect(replacing.length).toBeGreaterThan(1);
  expect(ALONE).toEqual(expect.arrayContaining(replacing));
});

it('starts files first that exist', () => {
  expect(LONGEST.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});
