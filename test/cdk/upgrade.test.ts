/** No upgrade may lose data of a cluster. WRITE_SNAPSHOT=1 writes the snapshot again. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { App, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, it } from 'vitest';
import { Encryption } from '../../cdk/lib/cluster-options.ts';
import type { NodekeeperClusterProps } from '../../cdk/lib/cluster-props.ts';
import { nodekeeperApp } from '../../cdk/lib/nodekeeper-app.ts';
import { NodekeeperCluster } from '../../cdk/lib/nodekeeper-cluster.ts';
import { type StatefulParts, statefulParts, upgradeFaults } from './stateful-resources.ts';
import { synthesise } from './synthesised.ts';

const FILE = fileURLToPath(new URL('./stateful-resources.json', import.meta.url));

const VARIANTS: Readonly<Record<string, NodekeeperClusterProps>> = {
  'as it comes': {},
  'with everything on': {
    customDomain: {
      domainName: 'nodes.example.com',
      certificateArn: 'arn:aws:acm:eu-west-1:111122223333:certificate/01234567-89ab-cdef-0123-456789abcdef',
    },
    encryption: Encryption.customerManaged(),
    alarmEmail: 'on-call@example.com',
  },
};

const present = Object.fromEntries(
  Object.entries(VARIANTS).map(([name, props]) => [name, statefulParts(synthesise(props).toJSON())]),
);
if (process.env['WRITE_SNAPSHOT'] === '1') writeFileSync(FILE, `${JSON.stringify(present, undefined, 2)}\n`);
const snapshot = JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, StatefulParts>;

const text = (faults: readonly string[]): string => faults.join('\n');

describe('an upgrade', () => {
  it.each(Object.keys(VARIANTS))('loses and replaces nothing that holds something: a cluster %s', (name) => {
    expect(text(upgradeFaults(snapshot[name]!, present[name]!))).toBe('');
  });

  it('covers every resource that holds data', () => {
    const types = Object.values(snapshot['with everything on']!.resources).map(({ type }) => type);
    expect(types.filter((type) => type === 'AWS::DynamoDB::Table').length).toBeGreaterThanOrEqual(3);
    for (const type of ['Logs::LogGroup', 'KMS::Key', 'ApiGatewayV2::Api']) {
      expect(types).toContain(`AWS::${type}`);
    }
  });
});

describe('a setting', () => {
  const accessEntriesFile = 'access.yaml';
  /** A synthesis by `cdk -c`: the CLI merges cdk.json and the command line. */
  const deploy = (recorded: Record<string, unknown>, commandLine: Record<string, unknown>) => {
    const context = { 'aws:cdk:bundling-stacks': [], ...recorded, ...commandLine };
    return Template.fromStack(nodekeeperApp({ app: { context }, recorded }).stack).toJSON();
  };

  it('that the next deployment would forget is refused, and kept when cdk.json has it', () => {
    const settings = { clusterId: 'edge-1', alarmEmail: 'on-call@example.com' };
    expect(() => deploy({}, settings)).toThrow(
      /^clusterId "edge-1" is not in "context" of cdk.json: the next deployment would forget it.*\nalarmEmail /,
    );
    expect(() => deploy({ clusterId: 'edge-2' }, { clusterId: 'edge-1' })).toThrow('clusterId "edge-1" is not in');
    expect(() => deploy({}, { accessEntriesFile })).toThrow('accessEntriesFile');
    const first = deploy(settings, settings);
    const second = deploy(settings, {});
    expect(second).toEqual(first);
    expect(() => deploy({}, { ...settings, unrecordedSettings: 'allow' })).not.toThrow();
    expect(() => deploy({}, { removalPolicy: 'destroy', deletionProtection: 'false' })).not.toThrow();
  });

  it.each([
    ['clusterID', 'clusterId'],
    ['polcyFile', 'policyFile'],
    ['stackname', 'stackName'],
    ['unrecordedsettings', 'unrecordedSettings'],
  ])('that is misspelt as %s is refused with its name', (misspelt, name) => {
    expect(() => deploy({}, { [misspelt]: 'on' })).toThrow(`${misspelt} "on" is no setting: did you mean ${name}`);
    expect(() => deploy({ [misspelt]: 'on' }, {})).toThrow(`did you mean ${name}`);
  });

  it('of other constructs is left alone', () => {
    expect(() => deploy({ tag: 'x', policy: 'y', policyFolder: 'y' }, { url: 'z' })).not.toThrow();
  });

  it('of restored tables deletes no table, neither when it is set nor when it is removed', () => {
    const arn = (name: string) => `arn:aws:dynamodb:eu-west-1:111122223333:table/restored-${name}`;
    const streamed = (name: string) => ({
      tableArn: arn(name),
      streamArn: `${arn(name)}/stream/2026-01-01T00:00:00.000`,
    });
    const restoredTables = {
      health: streamed('health'),
      objects: streamed('objects'),
      control: { tableArn: arn('control') },
    };
    const tablesOf = (props: NodekeeperClusterProps) =>
      Object.entries(synthesise(props).toJSON()['Resources'] as Record<string, { Type: string }>).filter(
        ([, { Type: type }]) => type === 'AWS::DynamoDB::Table',
      );
    const before = tablesOf({ deletionProtection: false });
    expect(before).toHaveLength(3);
    expect(tablesOf({ deletionProtection: false, restoredTables })).toEqual(before);
    expect(() => synthesise({ restoredTables, removalPolicy: RemovalPolicy.DESTROY })).toThrow(
      'removalPolicy "destroy" cannot be combined with restored tables',
    );
  });
});

describe('a change that would lose data', () => {
  const good = present['as it comes']!;
  const template = () => synthesise().toJSON() as Record<string, Record<string, Record<string, unknown>>>;
  const health = Object.keys(good.resources).find((id) => id.includes('TablesHealth'))!;
  const objects = Object.keys(good.resources).find((id) => id.includes('TablesObjects'))!;
  const faultsOf = (change: (template: Record<string, Record<string, Record<string, unknown>>>) => void) => {
    const changed = template();
    change(changed);
    return upgradeFaults(good, statefulParts(changed));
  };

  it('is detected when a construct is renamed', () => {
    const stack = new Stack(new App({ context: { 'aws:cdk:bundling-stacks': [] } }), 'Nodekeeper');
    new NodekeeperCluster(stack, 'Renamed');
    const faults = upgradeFaults(good, statefulParts(Template.fromStack(stack).toJSON()));
    expect(faults).toContainEqual(
      expect.stringMatching(new RegExp(`^${health} \\(AWS::DynamoDB::Table\\) would be lost: no such logical id`)),
    );
    expect(faults.filter((fault) => fault.includes('would be lost'))).toHaveLength(Object.keys(good.resources).length);
  });

  it('is detected when the keys of a table change, with their previous value', () => {
    const faults = faultsOf(({ Resources: resources }) => {
      (resources![health]!['Properties'] as Record<string, unknown>)['KeySchema'] = [
        { AttributeName: 'name', KeyType: 'HASH' },
      ];
    });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(/would be replaced.*KeySchema was .*"pk".* is .*"name".*Lost: every object in it/);
  });

  it.each<[string, string, (resource: Record<string, unknown>) => void]>([
    [
      'a table gets a name',
      'TableName was absent, is "nodes"',
      (resource) => {
        (resource['Properties'] as Record<string, unknown>)['TableName'] = 'nodes';
      },
    ],
    [
      'a stream is removed',
      'StreamSpecification was',
      (resource) => {
        delete (resource['Properties'] as Record<string, unknown>)['StreamSpecification'];
      },
    ],
    [
      'items are expired by another attribute',
      'TimeToLiveSpecification was',
      (resource) => {
        (resource['Properties'] as Record<string, unknown>)['TimeToLiveSpecification'] = {
          AttributeName: 'sk',
          Enabled: true,
        };
      },
    ],
    [
      'a table would go with the stack',
      'deletionPolicy was Retain, is Delete',
      (resource) => {
        resource['DeletionPolicy'] = 'Delete';
      },
    ],
    [
      'it becomes something else',
      'it is AWS::SNS::Topic',
      (resource) => {
        resource['Type'] = 'AWS::SNS::Topic';
      },
    ],
  ])('is detected when %s', (_, message, change) => {
    const faults = faultsOf(({ Resources: resources }) => change(resources![objects]!));
    expect(text(faults)).toContain(message);
  });

  it('is detected when an output is removed', () => {
    const faults = faultsOf(({ Outputs: outputs }) => {
      delete outputs!['Endpoint'];
    });
    expect(faults).toEqual([expect.stringContaining('the output Endpoint would be deleted')]);
  });

  it('requires that a new resource is recorded', () => {
    const faults = faultsOf(({ Resources: resources }) => {
      resources!['Another'] = { Type: 'AWS::SNS::Topic' };
    });
    expect(faults).toEqual([expect.stringMatching(/^Another .* is new .*WRITE_SNAPSHOT=1/)]);
  });
});
