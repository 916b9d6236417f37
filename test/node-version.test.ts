/**
 * What happens under a Node.js that is too old: one line, never a stack trace. And that the number is the same
 * everywhere.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildAgent } from '../scripts/build-agent.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'nodekeeper-node-version-'));
afterAll(() => rmSync(scratch, { recursive: true }));

const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const NEEDED = /NODE_MINIMUM = '([\d.]+)'/.exec(textOf('shared/config/require-node.mjs'))?.[1] ?? 'not found';

interface OldNode {
  readonly version: string;
  readonly command: readonly string[];
}

/** The running Node.js, which reports another release. */
function pretended(version: string): OldNode {
  const preload = join(scratch, `node-${version}.mjs`);
  const versions = `{ ...process.versions, node: '${version}' }`;
  writeFileSync(preload, `Object.defineProperty(process, 'versions', { value: ${versions} });\n`);
  return { version, command: [process.execPath, '--import', preload] };
}

/** Node.js of line 20 as this machine may have it beside the repository's: it cannot load TypeScript at all. */
function installed(): OldNode[] {
  const places = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/local/bin', '/usr/bin'];
  const programs = places.map((place) => join(place, 'node')).filter((program) => existsSync(program));
  return [...new Set(programs.map((program) => realpathSync(program)))]
    .map((program) => {
      const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
      return { version: String(stdout).trim().replace(/^v/, ''), command: [program] };
    })
    .filter(({ version }) => version.startsWith('20.'));
}

const OLD_NODES = [...['20.20.2', '22.17.1', '9.0.0'].map(pretended), ...installed()];

const run = ({ command: [program = '', ...args] }: OldNode, ...rest: string[]): SpawnSyncReturns<string> =>
  spawnSync(program, [...args, ...rest], { cwd: ROOT, encoding: 'utf8' });

/** The command of somebody who did not run `npm ci`. */
function commandAlone(): string {
  const folder = join(scratch, 'alone');
  mkdirSync(join(folder, 'cli/bin'), { recursive: true });
  mkdirSync(join(folder, 'shared/config'), { recursive: true });
  for (const file of ['cli/bin/nodekeeper.mjs', 'shared/config/require-node.mjs', 'shared/config/serve-flags.mjs']) {
    cpSync(join(ROOT, file), join(folder, file));
  }
  return join(folder, 'cli/bin/nodekeeper.mjs');
}

describe('with a Node.js that is too old', () => {
  let bundle: string;
  beforeAll(async () => {
    bundle = await buildAgent(join(scratch, 'agent'));
  });

  const entries: Readonly<Record<string, () => readonly [path: string, program: string, remedy: RegExp]>> = {
    'one machine': () => ['server/bin/start.mjs', 'nodekeeper', /`npm start`/],
    'the emulation of AWS': () => ['aws-local/bin/start.mjs', 'nodekeeper', /`npm run start:aws`/],
    'the CDK app': () => ['cdk/bin/nodekeeper.mjs', 'nodekeeper cdk', /`npm run synth`/],
    'the agent from source': () => ['agent/bin/nodekeeper-agent.mjs', 'nodekeeper-agent', /install a newer Node\.js/],
    'the bundled agent': () => [bundle, 'nodekeeper-agent', /install a newer Node\.js/],
    'the commands without a Node.js of their own': () => [commandAlone(), 'nodekeeper', /`npm ci`/],
  };
  const cases = OLD_NODES.flatMap((node) => Object.keys(entries).map((name) => ({ name, node })));

  it.each(cases)('$name says what it found, what it needs and what to do ($node.version)', ({ name, node }) => {
    const [path, program, remedy] = entries[name]!();
    const { status, stdout, stderr } = run(node, path, '--help');
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr.trimEnd().split('\n')).toEqual([expect.stringMatching(remedy)]);
    expect(stderr).toContain(`${program}: this is Node.js ${node.version}, and ${NEEDED} or later is needed; `);
  });

  it.each(OLD_NODES)('the commands use the one that npm ci installed ($version)', (node) => {
    const { status, stdout } = run(node, 'cli/bin/nodekeeper.mjs', '--help');
    expect(status).toBe(0);
    expect(stdout).toMatch(/^usage:/);
  });

  it.each(OLD_NODES)('install.sh stops before it installs anything ($version)', ({ version, command }) => {
    const programs = mkdtempSync(join(scratch, 'programs-'));
    const script = (name: string, text: string): void => {
      writeFileSync(join(programs, name), `#!/bin/sh\n${text}\n`);
      chmodSync(join(programs, name), 0o755);
    };
    script('node', `exec ${command.map((word) => `'${word}'`).join(' ')} "$@"`);
    script('id', 'echo 0');
    // What would install something does nothing, should the check let it pass.
    script('install', 'echo installed');
    script('systemctl', 'echo started');
    const given = ['--endpoint', 'https://api.example', '--token-file', '/dev/null', '--no-start'];
    const { status, stdout, stderr } = spawnSync('sh', [join(bundle, '../install.sh'), ...given], {
      encoding: 'utf8',
      env: { ...process.env, PATH: `${programs}:/usr/bin:/bin` },
    });
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toContain(`this is Node.js ${version}, and ${NEEDED} or later is needed`);
  });
});

describe('with the Node.js that runs this', () => {
  it.each(['aws-local/bin/start.mjs', 'agent/bin/nodekeeper-agent.mjs'])('%s starts', (entry) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, entry), '--help'], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^usage: |^Usage: /);
  });
});

describe('the release that is needed', () => {
  it('is the same in package.json, in its lock, in the installer and in the documentation', () => {
    const { engines } = JSON.parse(textOf('package.json')) as { engines: { node: string } };
    const lock = JSON.parse(textOf('package-lock.json')) as { packages: Record<string, { engines: unknown }> };
    expect(engines).toEqual({ node: `>=${NEEDED}` });
    expect(lock.packages['']?.engines).toEqual(engines);
    expect(textOf('agent/packaging/install.sh')).toContain(`Node.js ${NEEDED} or later`);
    const short = NEEDED.replace(/\.0$/, '');
    for (const page of ['README.md', 'docs/agent.md']) expect(textOf(page)).toContain(`Node.js ${short}`);
  });

  it('is checked by the programs that npm and cdk start', () => {
    const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> };
    const { app } = JSON.parse(textOf('cdk.json')) as { app: string };
    for (const command of [scripts['start'], scripts['start:aws'], scripts['agent'], app]) {
      expect(command).toMatch(/^(?:[A-Z_]+=\S+ )*node (?:--\S+ )*\S+\.mjs(?: --demo)?$/);
    }
  });
});
