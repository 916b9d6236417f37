import { expect, it } from 'vitest';
import { splitByRegion, unrequestedAnswers } from './answers-without-call.ts';

const instance = (instanceId: string, region: string | undefined) => ({ instanceId, zone: undefined, region });

it('instances of another region are foreign; the others are described once', () => {
  const instances = [instance('i-1', 'eu-west-1'), instance('i-2', 'us-east-1'), instance('i-1', undefined)];
  const { ids, foreign } = splitByRegion(instances, { region: 'eu-west-1', accountId: '111111111111' });
  expect(ids).toEqual(['i-1']);
  expect([...foreign]).toEqual([['i-2', expect.objectContaining({ kind: 'foreign' })]]);
});

it('a missing instance that is not requested is foreign by an earlier answer, or failed until a later pass', () => {
  const answers = unrequestedAnswers({ requested: ['i-1'], foreign: ['i-2'], later: ['i-3'] });
  expect(answers.map(([id, { kind }]) => [id, kind])).toEqual([
    ['i-2', 'foreign'],
    ['i-3', 'failed'],
  ]);
});
