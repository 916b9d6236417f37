import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Stack, Validations } from 'aws-cdk-lib';
import { Code, Function as LambdaFunction, Runtime } from 'aws-cdk-lib/aws-lambda';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';
import { NodekeeperCluster } from '../../cdk/lib/nodekeeper-cluster.ts';
import { InvalidPolicyError } from '../../cdk/lib/policy-source.ts';
import { accessEntriesFromJson } from '../../shared/config/access-entries.ts';
import { startText } from '../support/start-text.ts';
import { functionRole, ofType, type Resource, synthesise, unbundledApp } from './synthesised.ts';

/** Ten seconds on an idle machine, longer on a busy one. */
const SYNTH_TIMEOUT_MS = 180_000;
const scratch = mkdtempSync(join(tmpdir(), 'nodekeeper-synth-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const policyFile = (name: string, text: string): string => {
  const path = join(scratch, name);
  writeFileSync(path, text);
  return path;
};

const settings = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, process.env[name]]));
const entry = join(repositoryRoot, 'cdk/bin/nodekeeper.ts');
const synthToFolder = (
  outputFolder: string,
  context: Record<string, unknown> = {},
  { cwd = repositoryRoot, environment = {} }: { cwd?: string; environment?: Record<string, string> } = {},
) =>
  spawnSync(process.execPath, [entry], {
    cwd,
    encoding: 'utf8',
    timeout: SYNTH_TIMEOUT_MS,
    env: {
      ...settings('PATH', 'GOGC', 'GOMEMLIMIT'),
      CDK_OUTDIR: outputFolder,
      CDK_CONTEXT_JSON: JSON.stringify(context),
      ...environment,
    },
  });

/** More than the environment of a function has room for. JSON is YAML. */
const ACCESS_ENTRIES = Array.from({ length: 500 }, (_, index) => ({
  arn: `arn:aws:iam::111122223333:role/Team${index}`,
  groups: ['nodekeeper:viewers'],
}));
const WHOLE = {
  'aws:cdk:enable-asset-metadata': true,
  unrecordedSettings: 'allow',
  accessEntriesFile: policyFile('entries.yaml', JSON.stringify(ACCESS_ENTRIES)),
};

/** Bundle size that a cold start may read. KB. Of the others: 750. */
const START_KILOBYTES_MAX: Readonly<Record<string, number>> = { heartbeat: 150, api: 962, watch: 900 };

/**
 * Loaded when they are first needed: the client of EC2, the parser of YAML for a patch, and the table of protobuf
 * messages for a body. watch reads no body.
 */
const PROTOBUF_TABLE = /apps\/v1\.ControllerRevision:/;
const LOADED_ON_DEMAND: Readonly<Record<string, readonly RegExp[]>> = {
  // The schemas of api and watch are read from the table.
  api: [/DescribeInstances/, /YAMLParseError/],
  heartbeat: [PROTOBUF_TABLE],
  watch: [],
  'cloud-node': [/DescribeInstances/],
  'pod-gc': [/DescribeInstances/],
  // The API's kinds and expressions, for admission policies.
  workloads: [/Pods that are ready\./, /kubernetes\.authorization\.Authorizer/],
};

describe('synth', () => {
  const outputFolder = join(scratch, 'whole');
  beforeAll(() => {
    const { status, stderr } = synthToFolder(outputFolder, WHOLE);
    expect(status, stderr).toBe(0);
  }, SYNTH_TIMEOUT_MS + 10_000);

  const handlers = () => {
    const template = JSON.parse(readFileSync(join(outputFolder, 'Nodekeeper.template.json'), 'utf8')) as {
      Resources: Record<string, Resource>;
    };
    return Object.values(template.Resources)
      .filter((resource) => resource.Type === 'AWS::Lambda::Function')
      .map((resource) => ({
        resource,
        role: functionRole(resource),
        folder: join(outputFolder, String(resource.Metadata?.['aws:asset:path'])),
      }));
  };

  it('bundles every handler into one ES module that exports its handler', () => {
    const assets = handlers();
    expect(new Set(assets.map((asset) => asset.folder)).size).toBe(assets.length);
    for (const { role, folder } of assets) {
      const bundled = readdirSync(folder).filter((name) => name.endsWith('.mjs'));
      const onDemand = LOADED_ON_DEMAND[role];
      if (onDemand === undefined) expect(bundled, role).toEqual(['index.mjs']);
      for (const content of onDemand ?? []) expect(startText(folder), role).not.toMatch(content);
      expect(readFileSync(join(folder, 'index.mjs'), 'utf8'), role).toMatch(/export\{[^}]*\bas handler\b/);
      expect(Buffer.byteLength(startText(folder)), role).toBeLessThanOrEqual(
        (START_KILOBYTES_MAX[role] ?? 750) * 1_024,
      );
    }
  });

  it(
    'writes the same bytes from any directory into any other, and is checked unless local mode asks for it',
    () => {
      const elsewhere = join(scratch, 'deeper', 'than', 'the', 'other');
      // The variable and the option --no-validation are the CDK's: its own rules only.
      const environment = { CDK_VALIDATION: 'false', NODEKEEPER_CDK_NAG: 'false' };
      const { status, stderr } = synthToFolder(elsewhere, WHOLE, { cwd: tmpdir(), environment });
      expect(status, stderr).toBe(0);
      const [one, other] = [outputFolder, elsewhere].map((folder) =>
        readFileSync(join(folder, 'Nodekeeper.template.json'), 'utf8'),
      );
      // The asset hashes are the hashes of the bundles, source maps included.
      expect(other).toBe(one);
      const checked = (folder: string): boolean => existsSync(join(folder, 'validation-report.json'));
      expect([checked(outputFolder), checked(elsewhere)]).toEqual([true, false]);
    },
    SYNTH_TIMEOUT_MS + 10_000,
  );

  it('puts access entries of any number beside the handler of the API', () => {
    const { resource: api, folder } = handlers().find(({ role }) => role === 'api')!;
    const file = readFileSync(join(folder, 'access-entries.json'), 'utf8');
    expect(accessEntriesFromJson(file)).toEqual(ACCESS_ENTRIES);
    const { Variables: variables } = api.Properties['Environment'] as { Variables: Record<string, string> };
    expect(variables['ACCESS_ENTRIES_FILE']).toBe('access-entries.json');
  });

  it('writes the same template every time', () => {
    // With a context the template is not that of an earlier test.
    expect(synthesise({}, { again: true }).toJSON()).toEqual(synthesise().toJSON());
  });

  it('fixes neither account nor Region', () => {
    expect(JSON.stringify(synthesise().toJSON())).not.toMatch(/\b\d{12}\b|us-east-1/);
  });

  it('exits with code 1 and one line per fault when the policy breaks a rule', () => {
    const path = policyFile('bad.yaml', 'beatIntervalSeconds: 10\nnodeMonitorPeriodSeconds: 7\ngrace: 3\n');
    const outputFolder = join(scratch, 'bad');
    const { status, stderr } = synthToFolder(outputFolder, { policyFile: path, unrecordedSettings: 'allow' });
    expect(status).toBe(1);
    expect(stderr.trim().split('\n').sort()).toEqual([
      `${path}:2 nodeMonitorPeriodSeconds 7 must be one of 5, 10, 15, 20, 30, 60 (seconds)`,
      expect.stringMatching(/bad\.yaml:3 grace 3 is no policy field; the nearest is /),
    ]);
    expect(existsSync(join(outputFolder, 'manifest.json'))).toBe(false);
  });

  it('passes the policy file to every function that decides', () => {
    const path = policyFile('good.yaml', 'nodeMonitorPeriodSeconds: 30\nnodeMonitorGracePeriodSeconds: 90\n');
    const template = synthesise({}, { policyFile: path });
    const environments = ofType(template, 'AWS::Lambda::Function').map(
      ([, resource]) => (resource.Properties['Environment'] as { Variables: Record<string, string> }).Variables,
    );
    const decidedBy = environments.filter((variables) => variables['NODEKEEPER_POLICY'] !== undefined);
    expect(environments.map((variables) => variables['POWERTOOLS_SERVICE_NAME']).toSorted()).toEqual(
      // The heartbeat makes no decision that depends on the policy.
      [...decidedBy.map((variables) => variables['POWERTOOLS_SERVICE_NAME']), 'heartbeat'].toSorted(),
    );
    for (const variables of decidedBy) {
      expect(JSON.parse(variables['NODEKEEPER_POLICY']!), variables['POWERTOOLS_SERVICE_NAME']).toMatchObject({
        nodeMonitorPeriodSeconds: 30,
        nodeMonitorGracePeriodSeconds: 90,
        beatIntervalSeconds: 10,
      });
    }
  });

  it('checks a policy in code by the same rules', () => {
    const stack = new Stack();
    expect(() => new NodekeeperCluster(stack, 'Cluster', { policy: { watchMode: 'poll' as 'longPoll' } })).toThrow(
      InvalidPolicyError,
    );
  });
});

describe('cdk-nag', () => {
  it('has no finding without an acknowledged reason', () => {
    expect(() => unbundledApp().app.synth()).not.toThrow();
  });

  it('detects violations: a queue without TLS and dead letters fails the synth', () => {
    const { app, stack } = unbundledApp();
    new Queue(stack, 'Planted');
    expect(() => app.synth()).toThrow(/AwsSolutions-SQS|[Vv]alidation/);
  });

  it('detects violations of the Serverless rules: a function without tracing and dead letters fails the synth', () => {
    const { app, stack } = unbundledApp();
    const code = Code.fromInline('exports.handler = () => {}');
    new LambdaFunction(stack, 'Planted', { code, handler: 'index.handler', runtime: Runtime.NODEJS_24_X });
    expect(() => app.synth()).toThrow();
    expect(readFileSync(join(app.outdir, 'validation-report.json'), 'utf8')).toContain('Serverless-LambdaDLQ');
  });

  it('has a reason of more than a few words with every acknowledgement', () => {
    const reasons = unbundledApp()
      .stack.node.findAll()
      .flatMap((construct) => construct.node.metadata)
      .filter((metadata) => metadata.type === Validations.ACKNOWLEDGED_RULES_METADATA_KEY)
      .flatMap((metadata) => Object.values(metadata.data as Record<string, string>));
    expect(reasons.length).toBeGreaterThan(0);
    for (const reason of reasons) expect(reason.split(' ').length).toBeGreaterThan(5);
  });
});
