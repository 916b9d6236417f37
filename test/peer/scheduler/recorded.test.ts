/** Replays answers of upstream's plugins that `npm run peer -- scheduler --record` wrote. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { randomCluster } from './clusters.ts';
import { compareCluster } from './compare.ts';
import type { RecordedAnswers } from './plugins.ts';

const recorded = readFileSync(new URL('recorded-answers.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as RecordedAnswers);

describe('the scheduler beside the plugins of kube-scheduler 1.20', () => {
  it.each(recorded)('filters, scores and preempts as they do in the cluster of seed $seed', ({ seed, answers }) => {
    expect(compareCluster(randomCluster(seed), answers).differences).toEqual([]);
  });

  it('has recorded scores, rejections and candidates of a preemption', () => {
    const counted = recorded.map(({ seed, answers }) => compareCluster(randomCluster(seed), answers).counted);
    const total = (name: keyof (typeof counted)[number]) => counted.reduce((sum, each) => sum + each[name], 0);
    expect(total('scores')).toBeGreaterThan(1_000);
    expect(total('rejections')).toBeGreaterThan(500);
    expect(total('candidates')).toBeGreaterThan(10);
  });
});
