import { describe, expect, it } from 'vitest';
import { isSameTemplate, NAME_ALPHABET, podNameFor, prefixOf, templateHash } from './template.rule.ts';

const container = { name: 'c', image: 'i' };
const template = (more: object = {}, metadata: object = {}) => ({
  metadata: { labels: { app: 'x' }, ...metadata },
  spec: { containers: [container], ...more },
});

describe('two templates', () => {
  it.each([
    ['the label of the hash', template({}, { labels: { app: 'x', 'pod-template-hash': 'h' } })],
    ['a time of creation', template({}, { creationTimestamp: null })],
    ['the order of members', { spec: { containers: [{ image: 'i', name: 'c' }] }, metadata: template().metadata }],
    ['empty lists and texts', template({ volumes: [], hostname: '', nodeSelector: {} })],
    ['a default', template({ restartPolicy: 'Always' })],
    ['a default of a container', template({ containers: [{ ...container, imagePullPolicy: 'Always' }] })],
  ])('WD-59 are the same that differ in %s', (_, other) => {
    expect(isSameTemplate(template(), other)).toBe(true);
    expect(templateHash(template(), 1)).toBe(templateHash(other, 1));
  });

  it('are the same that differ in the spelling of a quantity', () => {
    const sized = (cpu: string, memory: string) => {
      const resources = { requests: { cpu }, limits: { memory } };
      const ephemeral = { volumeClaimTemplate: { spec: { resources } } };
      return template({
        overhead: { cpu },
        containers: [{ ...container, resources }],
        volumes: [{ name: 'v', ephemeral }],
      });
    };
    expect(isSameTemplate(sized('1', '1Gi'), sized('1000m', '1024Mi'))).toBe(true);
    expect(isSameTemplate(sized('1', '1Gi'), sized('1001m', '1Gi'))).toBe(false);
  });

  it.each([
    ['an image', template({ containers: [{ ...container, image: 'j' }] })],
    ['a label', template({}, { labels: { app: 'y' } })],
    ['an annotation', template({}, { annotations: { note: 'x' } })],
    ['a number of containers', template({ containers: [container, { ...container, name: 'd' }] })],
    ['a host name', template({ hostname: 'h' })],
  ])('are not the same that differ in %s', (_, other) => {
    expect(isSameTemplate(template(), other)).toBe(false);
    expect(templateHash(template(), undefined)).not.toBe(templateHash(other, undefined));
  });

  it('have a hash in the alphabet of names, another one after each collision', () => {
    const hashes = [undefined, 0, 1].map((count) => templateHash(template(), count));
    expect(new Set(hashes).size).toBe(3);
    for (const hash of hashes) expect(hash).toMatch(new RegExp(`^[${NAME_ALPHABET}]{1,10}$`));
  });
});

describe('the name of a pod', () => {
  const name = (owner: string, seed: object = {}) => podNameFor(owner, { uid: 'u', fence: 1, position: 0, ...seed });

  it('is that of its owner with a suffix that follows from its seed', () => {
    expect(name('web')).toBe(name('web'));
    expect(name('web')).toMatch(new RegExp(`^web-[${NAME_ALPHABET}]{5}$`));
    expect(prefixOf(name('web'))).toBe('web-');
    const others = [name('web', { uid: 'v' }), name('web', { fence: 2 }), name('web', { position: 1 })];
    expect(new Set([name('web'), ...others]).size).toBe(4);
  });

  it('differs for each of a thousand positions', () => {
    expect(new Set(Array.from({ length: 1_000 }, (_, position) => name('web', { position }))).size).toBe(1_000);
  });

  it.each([
    [57, 58],
    [58, 58],
    [80, 58],
  ])('of an owner with %i characters has a prefix of %i', (characters, prefix) => {
    expect(prefixOf(name('x'.repeat(characters)))).toHaveLength(prefix);
    expect(name('x'.repeat(characters))).toHaveLength(prefix + 5);
  });
});
