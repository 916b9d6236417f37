/** The published package, installed into an empty CDK app that has nothing else of this repository. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';
import { functionList } from '../../functions/function-list.ts';
import { functionRole, type Resource } from './synthesised.ts';

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
import { Capacity, Encryption, NodekeeperCluster, type NodekeeperClusterProps } from 'nodekeeper';

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

describe('the package', () => {
  it(
    'is enough for an empty app to compile and to synthesise a cluster, without esbuild and without sources',
    () => {
      run(process.execPath, ['scripts/package.ts', join(scratch, 'built')], repositoryRoot);
      run('npm', ['pack', '--offline', '--silent', '--pack-destination', scratch], join(scratch, 'built'));
      const { version, dependencies, peerDependencies } = JSON.parse(
        readFileSync(join(scratch, 'built', 'package.json'), 'utf8'),
      ) as { version: string; dependencies: object; peerDependencies: object };

      const app = join(scratch, 'app');
      const installed = join(app, 'node_modules', 'nodekeeper');
      mkdirSync(installed, { recursive: true });
      run('tar', ['-xzf', join(scratch, `nodekeeper-${version}.tgz`), '--strip-components=1', '-C', installed], app);
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
