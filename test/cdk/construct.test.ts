/** NodekeeperCluster in an app and a stack of someone else. */
import { App, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, it } from 'vitest';
import { NodekeeperCluster, type NodekeeperClusterProps } from '../../cdk/lib/nodekeeper-cluster.ts';
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
