import type { DynamoDBStreamEvent } from 'aws-lambda';
import { describe, expect, it } from 'vitest';
import { handleStream } from './stream-handler.ts';

const event = {
  Records: [
    {
      eventName: 'INSERT',
      dynamodb: {
        Keys: { pk: { S: 's01' }, sk: { S: 'n1' } },
        NewImage: { pk: { S: 's01' }, sk: { S: 'n1' }, u: { S: 'uid' }, b: { N: '12' } },
        SequenceNumber: '100',
      },
    },
    {
      eventName: 'REMOVE',
      dynamodb: {
        Keys: { pk: { S: 's01' }, sk: { S: 'n2' } },
        OldImage: { pk: { S: 's01' }, sk: { S: 'n2' }, u: { S: 'uid' } },
        SequenceNumber: '200',
      },
    },
  ],
} as DynamoDBStreamEvent;
const log = { debug() {}, info() {}, warn() {}, error() {} };

describe('a batch of stream records', () => {
  it('is converted to items', async () => {
    const answer = await handleStream(event, log, async (records) => {
      expect(records).toEqual([
        { type: 'INSERT', key: { pk: 's01', sk: 'n1' }, newImage: { pk: 's01', sk: 'n1', u: 'uid', b: 12 } },
        { type: 'REMOVE', key: { pk: 's01', sk: 'n2' }, oldImage: { pk: 's01', sk: 'n2', u: 'uid' } },
      ]);
      return { faults: [], postponed: [] };
    });
    expect(answer).toEqual({ batchItemFailures: [] });
  });

  it('has binary attributes in Base64', async () => {
    const bytes = Uint8Array.of(1, 0, 255, 128);
    const image = { pk: { S: 'o#nodes#00' }, sk: { S: 'n1' }, o: { B: Buffer.from(bytes).toString('base64') } };
    const [record] = event.Records;
    const binary = { Records: [{ ...record, dynamodb: { ...record?.dynamodb, NewImage: image } }] };
    await handleStream(binary as unknown as DynamoDBStreamEvent, log, async ([read]) => {
      expect(new Uint8Array(read?.newImage?.['o'] as Uint8Array)).toEqual(bytes);
      return { faults: [], postponed: [] };
    });
  });

  it('is delivered again from the first failed record', async () => {
    const answer = await handleStream(event, log, async () => ({
      failedFrom: 1,
      faults: [new Error('no')],
      postponed: [],
    }));
    expect(answer).toEqual({ batchItemFailures: [{ itemIdentifier: '200' }] });
  });

  it.each<[string, { failedFrom?: number; faults: unknown[]; postponed: unknown[] }, string[]]>([
    ['nothing without a fault', { faults: [], postponed: [] }, []],
    ['what is done later', { faults: [], postponed: ['x'] }, ['warn']],
    ['what is skipped', { faults: ['x'], postponed: [] }, ['error']],
    ['what is delivered again', { failedFrom: 0, faults: [], postponed: [] }, ['error']],
    ['both', { failedFrom: 0, faults: ['x'], postponed: ['y'] }, ['warn', 'error']],
  ])('is logged by its faults: %s', async (_, outcome, expected) => {
    const levels: string[] = [];
    const level = (name: string) => () => void levels.push(name);
    await handleStream(event, { ...log, warn: level('warn'), error: level('error') }, async () => outcome);
    expect(levels).toEqual(expected);
  });

  it('is delivered again as a whole where the first failed record has no number', async () => {
    const answer = await handleStream({ Records: [{}] }, log, async (records) => {
      expect(records).toMatchObject([{ type: 'MODIFY' }]);
      return { failedFrom: 0, faults: [], postponed: [] };
    });
    expect(answer).toEqual({ batchItemFailures: [{ itemIdentifier: '' }] });
  });
});
