import { describe, expect, it, vi } from 'vitest';
import { isMap, isScalar } from 'yaml';
import { KUBERNETES_YAML, keyFaults, parseYaml, readYaml, type YamlOptions } from './yaml-documents.ts';

const faultsOf = (text: string, options: YamlOptions = KUBERNETES_YAML): readonly string[] => {
  const read = readYaml(text, 'a.yaml', options);
  return read.kind === 'read' ? [] : read.faults.map(({ at, message }) => `${at} ${message}`);
};

describe('documents of YAML', () => {
  // The check of the library, which compares every pair of keys, would report each a second time.
  it.each<YamlOptions>([KUBERNETES_YAML, { version: '1.2', aliasesMax: 0 }])(
    'with duplicate keys have one fault for each, with its line, by %o',
    (options) => {
      const text = 'a: {b: 1,\n  b: 2}\n---\nc: 1\n"c": 2\nd: "\\q"\nc: 3\n';
      expect(faultsOf(text, options)).toEqual([
        'a.yaml:2 Map keys must be unique',
        'a.yaml:5 Map keys must be unique',
        'a.yaml:6 Invalid escape sequence \\q',
        'a.yaml:7 Map keys must be unique',
      ]);
    },
  );

  it('may have several merge keys in a map, and no map as a key', () => {
    const read = readYaml('a: &a {x: 1}\nb: &b {z: 2}\nc:\n  <<: *a\n  <<: *b\n', 'a.yaml', KUBERNETES_YAML);
    expect(read).toMatchObject({ documents: [{ value: { c: { x: 1, z: 2 } } }] });
    expect(faultsOf('a: 1\n{b: 1}: 2\n')).toEqual(['a.yaml:2 a key of a map must be a text']);
  });

  it('are read in linear time: each key is read a fixed number of times', () => {
    const text = Array.from({ length: 1_000 }, (_, index) => `key-${index}: v`).join('\n');
    const [document] = parseYaml(text, KUBERNETES_YAML).documents;
    if (!isMap(document?.contents)) throw new Error('no map');
    const read = vi.fn((value: unknown) => value);
    for (const { key } of document.contents.items) {
      const name = isScalar(key) ? key.value : undefined;
      Object.defineProperty(key, 'value', { get: () => read(name) });
    }
    expect([...keyFaults(document)]).toEqual([]);
    expect(read.mock.calls.length).toBeLessThanOrEqual(3_000);
  });
});
