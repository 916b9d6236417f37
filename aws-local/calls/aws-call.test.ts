import { describe, expect, it } from 'vitest';
import { dynamoDbCalls, ec2Calls, eventsCalls, logsCalls } from './aws-call.ts';

const place = { region: 'eu-west-1', accountId: '111122223333' };
const table = (name: string) => `arn:aws:dynamodb:eu-west-1:111122223333:table/${name}`;
const short = (calls: ReturnType<typeof dynamoDbCalls>) =>
  calls.map(({ action, resource, context }) => [action, resource, context['dynamodb:LeadingKeys']]);

describe('what a request to DynamoDB asks of IAM', () => {
  it('is the action of its name, on the table, for the partition', () => {
    const key = { pk: { S: 's01' }, sk: { S: 'edge-1' } };
    expect(short(dynamoDbCalls('UpdateItem', { TableName: 'T', Key: key }, place))).toEqual([
      ['dynamodb:UpdateItem', table('T'), 's01'],
    ]);
    expect(short(dynamoDbCalls('PutItem', { TableName: 'T', Item: { ...key, v: { N: '1' } } }, place))).toEqual([
      ['dynamodb:PutItem', table('T'), 's01'],
    ]);
  });

  it('is one action for each part of a transaction', () => {
    const of = (part: string, tableName: string, pk: string) => ({
      [part]: { TableName: tableName, Key: { pk: { S: pk } } },
    });
    const items = [
      { Put: { TableName: 'A', Item: { pk: { S: 'a' } } } },
      of('Update', 'A', 'b'),
      of('Delete', 'B', 'c'),
      of('ConditionCheck', 'B', 'd'),
    ];
    expect(short(dynamoDbCalls('TransactWriteItems', { TransactItems: items }, place))).toEqual([
      ['dynamodb:PutItem', table('A'), 'a'],
      ['dynamodb:UpdateItem', table('A'), 'b'],
      ['dynamodb:DeleteItem', table('B'), 'c'],
      ['dynamodb:ConditionCheckItem', table('B'), 'd'],
    ]);
  });

  it('is recorded for every partition that a batch reads', () => {
    const keys = ['a', 'b'].map((pk) => ({ pk: { S: pk }, sk: { S: '-' } }));
    expect(short(dynamoDbCalls('BatchGetItem', { RequestItems: { T: { Keys: keys } } }, place))).toEqual([
      ['dynamodb:BatchGetItem', table('T'), 'a'],
      ['dynamodb:BatchGetItem', table('T'), 'b'],
    ]);
  });

  it('names the partition of a query, and the index where one is asked', () => {
    const input = {
      TableName: 'T',
      KeyConditionExpression: '#0 = :0 AND begins_with(#1, :1)',
      ExpressionAttributeNames: { '#0': 'pk', '#1': 'sk' },
      ExpressionAttributeValues: { ':0': { S: 'fleet' }, ':1': { S: 'zone#' } },
    };
    expect(short(dynamoDbCalls('Query', input, place))).toEqual([['dynamodb:Query', table('T'), 'fleet']]);
    expect(short(dynamoDbCalls('Query', { ...input, IndexName: 'I' }, place))).toEqual([
      ['dynamodb:Query', `${table('T')}/index/I`, 'fleet'],
    ]);
  });

  it('is itself, for an operation unknown here', () => {
    expect(short(dynamoDbCalls('Scan', { TableName: 'T' }, place))).toEqual([['dynamodb:Scan', table('T'), undefined]]);
  });
});

describe('what a request to EC2 asks of IAM', () => {
  const ask = (query: string) =>
    ec2Calls(new URLSearchParams(query), place, (id) => (id === 'vol-1' ? { owner: 'us' } : {}));

  it('is everything in the region, for a description', () => {
    expect(ask('Action=DescribeInstances')).toEqual([
      { action: 'ec2:DescribeInstances', resource: '*', context: { 'ec2:Region': 'eu-west-1' } },
    ]);
  });

  it('is the volume, with its tags, and the instance, for a detach', () => {
    expect(ask('Action=DetachVolume&VolumeId=vol-1&InstanceId=i-1')).toEqual([
      {
        action: 'ec2:DetachVolume',
        resource: 'arn:aws:ec2:eu-west-1:111122223333:volume/vol-1',
        context: { 'ec2:Region': 'eu-west-1', 'aws:ResourceTag/owner': 'us' },
      },
      {
        action: 'ec2:DetachVolume',
        resource: 'arn:aws:ec2:eu-west-1:111122223333:instance/i-1',
        context: { 'ec2:Region': 'eu-west-1' },
      },
    ]);
  });
});

describe('what other requests ask of IAM', () => {
  it('is the stream that log lines are put into', () => {
    expect(logsCalls('PutLogEvents', { logGroupName: 'audit', logStreamName: 'api' }, place)).toEqual([
      {
        action: 'logs:PutLogEvents',
        resource: 'arn:aws:logs:eu-west-1:111122223333:log-group:audit:log-stream:api',
        context: {},
      },
    ]);
  });

  it('is the bus of each event, with its source and type', () => {
    const Entries = [
      { Source: 'us', DetailType: 'Zone down' },
      { Source: 'us', DetailType: 'X', EventBusName: 'b' },
    ];
    expect(eventsCalls('PutEvents', { Entries }, place).map(({ resource, context }) => [resource, context])).toEqual([
      [
        'arn:aws:events:eu-west-1:111122223333:event-bus/default',
        { 'events:source': 'us', 'events:detail-type': 'Zone down' },
      ],
      ['arn:aws:events:eu-west-1:111122223333:event-bus/b', { 'events:source': 'us', 'events:detail-type': 'X' }],
    ]);
  });
});
