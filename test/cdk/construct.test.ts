/** NodekeeperCluster in an app and a stack of someone else. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { App, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { createResolver } from '../../aws-local/assembly/intrinsics.ts';
import type { Template as LocalTemplate } from '../../aws-local/assembly/template.ts';
import * as cdk from '../../cdk/index.ts';
import type { NodekeeperClusterProps } from '../../cdk/lib/cluster-props.ts';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';
import { NodekeeperCluster } from '../../cdk/lib/nodekeeper-cluster.ts';
import { ofType, resourcesOf } from './synthesised.ts';

const emptyStack = (): Stack =>
  new Stack(new App({ context: { 'aws:cdk:bundling-stacks': [] } }), 'Mine', {
    env: { account: '111122223333', region: 'eu-west-1' },
  });

const templateWith = (...clusters: readonly (readonly [id: string, props: NodekeeperClusterProps])[]): Template => {
  const stack = emptyStack();
  for (const [id, props] of clusters) new NodekeeperCluster(stack, id, props);
  return Template.fromStack(stack);
};

const valuesOf = (template: Template, type: string, property: string): unknown[] =>
  ofType(template, type).map(([, { Properties }]) => Properties[property]);

it('the example of docs/operations/deploy.md is accepted', () => {
  const page = readFileSync(join(repositoryRoot, 'docs/operations/deploy.md'), 'utf8');
  const [, example = ''] = /```ts\n(.*?)```/s.exec(page) ?? [];
  const body = example.replaceAll(/^import .*$/gm, '');
  const names = {
    ...cdk,
    Stack,
    App: class extends App {
      constructor() {
        super({ context: { 'aws:cdk:bundling-stacks': [] } });
      }
    },
    vpc: { selectSubnets: () => ({ subnetIds: ['subnet-01234567'] }) },
    group: { securityGroupId: 'sg-01234567' },
  };
  expect(body).toContain('new NodekeeperCluster(');
  new Function(...Object.keys(names), body)(...Object.values(names));
});

describe('two clusters in one stack', () => {
  const template = templateWith(['East', { clusterId: 'east' }], ['West', { clusterId: 'west' }]);

  it('have outputs and parameters of their own, named by their construct', () => {
    const { Outputs: outputs, Parameters: parameters } = template.toJSON() as Record<string, Record<string, object>>;
    expect(Object.keys(outputs!)).toEqual(expect.arrayContaining(['EastEndpoint', 'WestEndpoint', 'WestClusterId']));
    expect(Object.keys(parameters!)).toEqual(expect.arrayContaining(['EastStaticTokens', 'WestStaticTokens']));
    expect(JSON.stringify(outputs!['WestKubeconfigCommand'])).toContain('--stack Mine --cluster-id west --region');
  });

  it('share no resource and no name', () => {
    const alone = templateWith(['East', { clusterId: 'east' }]);
    expect(Object.keys(resourcesOf(template))).toHaveLength(2 * Object.keys(resourcesOf(alone)).length);
    for (const [type, property] of [
      ['AWS::CloudWatch::Alarm', 'AlarmName'],
      ['AWS::CloudWatch::Dashboard', 'DashboardName'],
      ['AWS::Events::EventBus', 'Name'],
    ] as const) {
      const names = valuesOf(template, type, property);
      expect(new Set(names).size, type).toBe(names.length);
    }
  });

  it('are refused with one clusterId', () => {
    expect(() => templateWith(['East', {}], ['West', {}])).toThrow(
      'clusterId "nodekeeper" is the clusterId of Mine/East too',
    );
  });

  it('cannot both have the plain names, which one may keep', () => {
    const plain = { outputPrefix: '' };
    const [east, west] = [{ clusterId: 'east', ...plain }, { clusterId: 'west' }];
    const outputs = templateWith(['East', east], ['West', west]).toJSON()['Outputs'] as object;
    expect(Object.keys(outputs)).toEqual(expect.arrayContaining(['Endpoint', 'WestEndpoint']));
    expect(() => templateWith(['East', { outputPrefix: 'a-b' }])).toThrow('outputPrefix "a-b" must be letters');
  });
});

describe('the surroundings of an organisation', () => {
  const boundary = 'arn:aws:iam::111122223333:policy/boundary';
  const network = { subnetIds: ['subnet-01234567', 'subnet-89abcdef'], securityGroupIds: ['sg-01234567'] };
  const policy = { watchMode: 'longPoll' };
  const template = templateWith([
    'Edge',
    { permissionsBoundaryArn: boundary, tags: { team: 'edge' }, network: { ...network, ipv6: true }, policy },
  ]);

  it('limit every role by a permissions boundary', () => {
    const boundaries = valuesOf(template, 'AWS::IAM::Role', 'PermissionsBoundary');
    expect(boundaries.length).toBeGreaterThan(9);
    expect(new Set(boundaries)).toEqual(new Set([boundary]));
  });

  it.each(['AWS::DynamoDB::Table', 'AWS::Lambda::Function', 'AWS::SQS::Queue', 'AWS::Logs::LogGroup'])(
    'tag every %s',
    (type) => {
      for (const tags of valuesOf(template, type, 'Tags')) {
        expect(tags).toContainEqual({ Key: 'team', Value: 'edge' });
      }
    },
  );

  it('connect every function to the subnets, and only Lambda may change their interfaces', () => {
    const functions = ofType(template, 'AWS::Lambda::Function');
    for (const [id, { Properties }] of functions) {
      expect(Properties['VpcConfig'], id).toEqual({
        SubnetIds: network.subnetIds,
        SecurityGroupIds: network.securityGroupIds,
        Ipv6AllowedForDualStack: true,
      });
    }
    const statements = ofType(template, 'AWS::IAM::Policy').flatMap(
      ([, { Properties }]) => (Properties['PolicyDocument'] as { Statement: { Effect: string }[] }).Statement,
    );
    const about = statements.filter((statement) => JSON.stringify(statement).includes('ec2:CreateNetworkInterface'));
    expect(about.filter(({ Effect }) => Effect === 'Allow')).toHaveLength(functions.length);
    const denied = about.filter(({ Effect }) => Effect === 'Deny');
    expect(denied).toHaveLength(functions.length);
    for (const statement of denied) expect(JSON.stringify(statement)).toContain('lambda:SourceFunctionArn');
    expect(JSON.stringify(templateWith(['Edge', {}]).toJSON())).not.toContain('VpcConfig');
  });

  it.each<[string, NodekeeperClusterProps]>([
    [
      'network.subnetIds[1] "vpc-1" must be the id of a subnet',
      { network: { ...network, subnetIds: ['subnet-01234567', 'vpc-1'] } },
    ],
    ['network.securityGroupIds [] must not be empty', { network: { ...network, securityGroupIds: [] } }],
    ['Function URLs do not stream responses inside of a VPC', { network }],
    ['permissionsBoundaryArn "mine" must be the ARN of an IAM policy', { permissionsBoundaryArn: 'mine' }],
    ['tags.aws:team "edge" breaks the rules of AWS for tags', { tags: { 'aws:team': 'edge' } }],
  ])('are checked at synth: %s', (message, props) => {
    expect(() => templateWith(['Edge', props])).toThrow(message);
  });
});

describe('the props', () => {
  const FILES = ['nodekeeper-cluster', 'capacity', 'cluster-options', 'network', 'restored-tables'].map(
    (name) => `cdk/lib/${name}.ts`,
  );
  const PROPS = [
    'NodekeeperClusterProps',
    'Capacity',
    'Encryption',
    'CustomDomain',
    'ClusterNetwork',
    'RestoredTables',
    'StreamedTable',
    'RestoredTable',
    'AccessEntry',
  ];
  /** Types that jsii refuses in a public property: unions, mapped and literal types, read-only arrays. */
  const refusedIn = (file: string): string[] => {
    const source = ts.createSourceFile(file, readFileSync(join(repositoryRoot, file), 'utf8'), ts.ScriptTarget.Latest);
    const refused: string[] = [];
    const check = (owner: string, type: ts.TypeNode | undefined): void => {
      if (type === undefined) return;
      const text = type.getText(source);
      const isMap = ts.isTypeLiteralNode(type) && type.members.every(ts.isIndexSignatureDeclaration);
      const isOptional = ts.isUnionTypeNode(type) && type.types.length === 2 && / \| undefined$/.test(text);
      if (isOptional) check(owner, type.types[0]);
      else if (
        ts.isUnionTypeNode(type) ||
        ts.isTypeOperatorNode(type) ||
        (ts.isTypeLiteralNode(type) && !isMap) ||
        /^(Partial|Readonly)</.test(text)
      ) {
        refused.push(`${owner}: ${text}`);
      }
    };
    source.forEachChild((node) => {
      if (ts.isTypeAliasDeclaration(node) && PROPS.includes(node.name.text)) check(node.name.text, node.type);
      if (!ts.isInterfaceDeclaration(node) && !ts.isClassDeclaration(node)) return;
      if (!PROPS.includes(node.name?.text ?? '')) return;
      for (const member of node.members) {
        if (ts.isPropertySignature(member) || ts.isPropertyDeclaration(member)) {
          check(`${node.name?.text}.${member.name.getText(source)}`, member.type);
        }
      }
    });
    return refused;
  };

  it('have types that jsii can translate to other languages', () => {
    expect([...FILES, 'shared/access/access-entry.ts'].flatMap(refusedIn)).toEqual([]);
  });
});

describe('schedules', () => {
  it('are created after the policies of their role', () => {
    const template = templateWith(['Edge', {}]);
    const policies = ofType(template, 'AWS::IAM::Policy');
    const schedules = ofType(template, 'AWS::Scheduler::Schedule');
    expect(schedules.length).toBeGreaterThan(0);
    for (const [id, schedule] of schedules) {
      const { RoleArn: roleArn } = schedule.Properties['Target'] as { RoleArn: { 'Fn::GetAtt': [string, 'Arn'] } };
      const [role] = roleArn['Fn::GetAtt'];
      const own = policies.filter(([, { Properties }]) => JSON.stringify(Properties['Roles']).includes(`"${role}"`));
      expect(own.length, id).toBeGreaterThan(0);
      const { DependsOn: dependsOn } = schedule as unknown as { DependsOn?: readonly string[] };
      expect(dependsOn ?? [], id).toEqual(expect.arrayContaining(own.map(([policy]) => policy)));
    }
  });
});

describe('the address of the dashboard', () => {
  const template = Template.fromStack(
    (() => {
      const stack = new Stack(new App({ context: { 'aws:cdk:bundling-stacks': [] } }), 'Anywhere');
      new NodekeeperCluster(stack, 'Edge');
      return stack;
    })(),
  ).toJSON() as LocalTemplate;
  const physical = { ref: () => undefined, attribute: () => undefined };

  it.each([
    ['aws', 'eu-west-1', 'amazonaws.com', 'eu-west-1.console.aws.amazon.com'],
    ['aws-cn', 'cn-north-1', 'amazonaws.com.cn', 'cn-north-1.console.amazonaws.cn'],
    ['aws-us-gov', 'us-gov-west-1', 'amazonaws.com', 'us-gov-west-1.console.amazonaws-us-gov.com'],
    ['aws-eusc', 'eusc-de-east-1', 'amazonaws.eu', 'console.amazonaws.eu'],
  ])('is in the console of the partition %s', (partition, region, urlSuffix, host) => {
    const resolver = createResolver({
      template,
      physical,
      parameters: {},
      pseudoParameters: { 'AWS::Partition': partition, 'AWS::Region': region, 'AWS::URLSuffix': urlSuffix },
    });
    const output = template.Outputs?.['EdgeDashboardUrl'] as { Value: unknown } | undefined;
    expect(resolver.value(output?.Value, 'EdgeDashboardUrl')).toBe(
      `https://${host}/cloudwatch/home?region=${region}#dashboards/dashboard/nodekeeper`,
    );
  });
});
