/** The packages of npm that `npm run release` builds, installed from their files into something empty. */
import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';
import { functionList } from '../../functions/function-list.ts';
import { NODEKEEPER_VERSION } from '../../shared/config/version.ts';
import { functionRole, type Resource } from '../cdk/synthesised.ts';

const STEP_TIMEOUT_MS = 180_000;
const scratch = mkdtempSync(join(tmpdir(), 'nodekeeper-package-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const run = (command: string, args: readonly string[], cwd: string, env: Record<string, string> = {}): string => {
  const { PATH: path, HOME: home, GOGC: gogc, GOMEMLIMIT: memory } = process.env;
  const { status, stdout, stderr } = spawnSync(command, [...args], {
    cwd,
    encoding: 'utf8',
    timeout: STEP_TIMEOUT_MS,
    env: { PATH: path, HOME: home, GOGC: gogc, GOMEMLIMIT: memory, ...env },
  });
  expect(status, stderr).toBe(0);
  return stdout;
};

const APP = `
import { App, Stack } from 'aws-cdk-lib';
import { Capacity, Encryption, NodekeeperCluster, type NodekeeperClusterProps } from '@nodekeeper/cdk';

const props: NodekeeperClusterProps = {
  capacity: Capacity.provisioned(1_000),
  encryption: Encryption.customerManaged(),
  policy: { nodeMonitorPeriodSeconds: 10 },
  accessEntries: [{ arn: 'arn:aws:iam::111122223333:role/Team', groups: ['nodekeeper:admins'] }],
};
const app = new App({ context: { 'aws:cdk:enable-asset-metadata': true } });
new NodekeeperCluster(new Stack(app, 'Mine'), 'Edge', props);
app.synth();
`;

const release = (out: string, ...options: readonly string[]): string =>
  run(
    process.execPath,
    [
      'scripts/release/run.ts',
      '--version',
      NODEKEEPER_VERSION,
      '--only',
      'program,construct',
      '--out',
      join(scratch, out),
      ...options,
    ],
    repositoryRoot,
  );
const hasMinisign = spawnSync('minisign', ['-v']).error === undefined;
/** Makes a key. @returns options of the release */
const signing = (): string[] => {
  const secret = join(scratch, 'secret.key');
  run('minisign', ['-G', '-W', '-p', join(scratch, 'nodekeeper.pub'), '-s', secret], scratch);
  return ['--key', secret];
};
const released = (name: string): string => join(scratch, 'first', name);
const refusal = (...args: readonly string[]): string => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/release/run.ts', ...args], {
    cwd: repositoryRoot,
    encoding: 'utf8',
  });
  expect(status).toBe(1);
  return stderr.trim();
};

beforeAll(() => release('first', ...(hasMinisign ? signing() : [])), 4 * STEP_TIMEOUT_MS);

describe('a release', () => {
  it('is the same, byte by byte, when it is built again', { timeout: 4 * STEP_TIMEOUT_MS }, () => {
    release('second');
    const sums = readFileSync(released('SHA256SUMS'), 'utf8');
    expect(readFileSync(join(scratch, 'second/SHA256SUMS'), 'utf8')).toBe(sums);
    expect(sums.trim().split('\n')).toHaveLength(4);
    run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], join(scratch, 'first'));
  });

  it('is verified by its installer', (context) => {
    if (!hasMinisign) context.skip('no minisign');
    const file = `nodekeeper-${NODEKEEPER_VERSION}.tgz`;
    const installer = join(repositoryRoot, 'agent/packaging/install-release.sh');
    const verify = [installer, '--key', '../nodekeeper.pub', '--verify', file];
    const [signed, verified] = run('sh', verify, join(scratch, 'first')).split('\n');
    expect([signed?.split(',')[0], verified]).toEqual([
      `signed: nodekeeper ${NODEKEEPER_VERSION}`,
      `verified: ${file}`,
    ]);
  });

  it('lists the packages of others in each file, with version, licence and hash', () => {
    const bill = JSON.parse(readFileSync(released(`nodekeeper-${NODEKEEPER_VERSION}.tgz.cdx.json`), 'utf8')) as {
      specVersion: string;
      components: { name: string; version: string; licenses: object[]; hashes: { content: string }[] }[];
    };
    expect(bill.specVersion).toBe('1.6');
    expect(bill.components.map(({ name }) => name)).toEqual(expect.arrayContaining(['zod', 'ws', 'preact', 'yaml']));
    for (const { name, version, licenses, hashes } of bill.components) {
      expect(version, name).toMatch(/^\d+\.\d+\.\d+/);
      expect(licenses, name).toHaveLength(1);
      expect(hashes[0]?.content, name).toMatch(/^[0-9a-f]{128}$/);
    }
  });

  it('is refused in one line, and nothing is written', () => {
    const out = join(scratch, 'refused');
    expect(refusal('--version', '9.9.9', '--out', out)).toBe(
      `release: --version 9.9.9: package.json has version ${NODEKEEPER_VERSION}; ` +
        `shared/config/version.ts has ${NODEKEEPER_VERSION}; CHANGELOG.md has no heading "## 9.9.9, DATE"`,
    );
    const right = ['--version', NODEKEEPER_VERSION];
    expect(refusal(...right, '--out', out, '--only', 'program,rpm')).toMatch(/^release: --only has no rpm: program,/);
    expect(refusal(...right, '--out', out, '--key', '/missing')).toBe('release: --key /missing: there is no such file');
    expect(refusal(...right, '--out', join(scratch, 'first'))).toMatch(/exists; a release is not mixed/);
    expect(existsSync(out)).toBe(false);
  });
});

describe('the package nodekeeper', () => {
  let app: string;
  const nodekeeper = (...args: readonly string[]): string =>
    run(process.execPath, ['node_modules/nodekeeper/bin/nodekeeper.mjs', ...args], app);

  beforeAll(() => {
    app = join(scratch, 'empty');
    mkdirSync(app);
    writeFileSync(join(app, 'package.json'), '{}');
    run(
      'npm',
      ['install', '--offline', '--no-audit', '--no-fund', released(`nodekeeper-${NODEKEEPER_VERSION}.tgz`)],
      app,
    );
  }, STEP_TIMEOUT_MS);

  it('has no dependency, 6 MB at most, and its programs beside each other', () => {
    expect(readdirSync(join(app, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['nodekeeper']);
    expect(readFileSync(released(`nodekeeper-${NODEKEEPER_VERSION}.tgz`)).length).toBeLessThan(6_000_000);
    expect(nodekeeper('version')).toContain(`nodekeeper ${NODEKEEPER_VERSION}, Kubernetes API v1.`);
    expect(nodekeeper('demo', 'machine', '--help')).toMatch(/^usage: nodekeeper demo machine/);
  });

  it('runs a hub by the interpreter of Node.js alone', () => {
    const printing = join(scratch, 'flags.mjs');
    writeFileSync(printing, "console.error(process.execArgv.join(' '));");
    writeFileSync(join(app, 'token'), 't');
    const hub = ['serve', '--upstream', 'https://127.0.0.1:9', '--upstream-token', 'token', '--data', 'hub'];
    const { status, stderr } = spawnSync(process.execPath, ['node_modules/nodekeeper/bin/nodekeeper.mjs', ...hub], {
      ...{ cwd: app, encoding: 'utf8', timeout: STEP_TIMEOUT_MS },
      env: { ...process.env, NODE_OPTIONS: `--import ${printing}` },
    });
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(/^--lite-mode .*\nnodekeeper serve: .*cannot be reached/ms),
    ]);
  });

  it('serves a cluster with its demonstration and its page', { timeout: STEP_TIMEOUT_MS }, async () => {
    const program = ['node_modules/nodekeeper/bin/nodekeeper.mjs', 'serve', '--demo', '--data', 'data', '--port', '0'];
    const child = spawn(process.execPath, program, { cwd: app, stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    try {
      const greeting = await new Promise<string>((resolve) => child.stdout.setEncoding('utf8').once('data', resolve));
      const kubeconfig = ['--kubeconfig', 'data/kubeconfig'];
      expect(nodekeeper('version', '--check', ...kubeconfig)).toContain(`cluster    ${NODEKEEPER_VERSION}`);
      expect(nodekeeper('demo', 'fleet', '--data', 'data', 'list')).toContain('edge-b-0');
      const [address = ''] = /http:\/\/127\.0\.0\.1:\d+\//.exec(greeting) ?? [];
      const script = await fetch(`${address}console.js`);
      expect([script.status, script.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8']);
    } finally {
      child.kill('SIGTERM');
      await ended;
    }
  });
});

describe('the package @nodekeeper/cdk', () => {
  it(
    'is enough for an empty app to compile and to synthesise a cluster, without esbuild and without sources',
    () => {
      const app = join(scratch, 'app');
      const installed = join(app, 'node_modules', '@nodekeeper/cdk');
      mkdirSync(installed, { recursive: true });
      const file = released(`nodekeeper-cdk-${NODEKEEPER_VERSION}.tgz`);
      run('tar', ['-xzf', file, '--strip-components=1', '-C', installed], app);
      const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
        dependencies: object;
        peerDependencies: object;
      };
      // Only what the package declares, and the types of Node.js that every TypeScript app has.
      for (const name of [...Object.keys(dependencies), ...Object.keys(peerDependencies), '@types']) {
        symlinkSync(join(repositoryRoot, 'node_modules', name), join(app, 'node_modules', name));
      }
      expect(existsSync(join(installed, 'functions/api/manifest.js'))).toBe(true);
      expect(existsSync(join(installed, 'functions/api/work.js'))).toBe(false);
      writeFileSync(join(app, 'package.json'), '{"type":"module"}');
      writeFileSync(join(app, 'app.ts'), APP);
      const flags = ['--module', 'nodenext', '--target', 'es2024', '--strict', '--types', 'node', 'app.ts'];
      run(process.execPath, [join(repositoryRoot, 'node_modules/typescript-7/bin/tsc'), ...flags], app);
      run(process.execPath, ['app.js'], app, { CDK_OUTDIR: join(app, 'cdk.out') });

      const template = JSON.parse(readFileSync(join(app, 'cdk.out', 'Mine.template.json'), 'utf8')) as {
        Resources: Record<string, Resource>;
        Outputs: Record<string, unknown>;
      };
      expect(Object.keys(template.Outputs)).toContain('EdgeEndpoint');
      const handlers = Object.values(template.Resources).filter(({ Type }) => Type === 'AWS::Lambda::Function');
      expect(handlers.map(functionRole).toSorted()).toEqual(functionList.map(({ name }) => name).toSorted());
      for (const handler of handlers) {
        const asset = join(app, 'cdk.out', String(handler.Metadata?.['aws:asset:path']), 'index.mjs');
        expect(readFileSync(asset, 'utf8'), functionRole(handler)).toMatch(/export\{[^}]*\bas handler\b/);
      }
    },
    4 * STEP_TIMEOUT_MS,
  );
});
