import { describe, expect, it, vi } from 'vitest';
import { configmaps } from '../../kinds/configmaps/serve.ts';
import { negotiateShape } from '../response-body.ts';
import { watchEventLine } from './watch-line.ts';

const SHAPE = negotiateShape('application/json', new URLSearchParams());

describe('the line of an event', () => {
  it('has the type that its watch sees, although watches share lines', () => {
    const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a', resourceVersion: '7' } };
    const typeIn = (type: 'ADDED' | 'MODIFIED' | 'DELETED'): unknown =>
      JSON.parse(watchEventLine(configmaps, { type, object, fromState: false }, SHAPE, { nowMs: 0, first: false }))
        .type;
    const seen = ['MODIFIED', 'ADDED', 'ADDED', 'MODIFIED', 'DELETED'] as const;
    expect(seen.map(typeIn)).toEqual(seen);
  });

  it('is written once for each type, in whatever order watches see them', () => {
    const toJSON = vi.fn(() => ({ name: 'a', resourceVersion: '7' }));
    const metadata = { name: 'a', resourceVersion: '7', toJSON };
    const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata };
    for (let watch = 0; watch < 10; watch += 1) {
      const type = watch % 2 === 0 ? 'ADDED' : 'MODIFIED';
      watchEventLine(configmaps, { type, object, fromState: false }, SHAPE, { nowMs: 0, first: false });
    }
    expect(toJSON).toHaveBeenCalledTimes(2);
  });
});
