/** Reads the text of `GET /metrics`, format 0.0.4 or OpenMetrics 1.0. Source: Prometheus, "Exposition formats". */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** By the name of the metric. */
export type Samples = ReadonlyMap<string, readonly Sample[]>;

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n' };

export function parseMetrics(text: string): Samples {
  const samples = new Map<string, Sample[]>();
  for (const line of text.split('\n')) {
    const match = line.startsWith('#') ? null : LINE.exec(line);
    if (match === null) continue;
    const [, name = '', labels = '', value] = match;
    const found = samples.get(name) ?? [];
    found.push({ labels: labelsOf(labels), value: Number(value) });
    samples.set(name, found);
  }
  return samples;
}

function labelsOf(text: string): Record<string, string> {
  const unescaped = (value: string): string =>
    value.replace(/\\(.)/g, (_, character: string) => ESCAPES[character] ?? character);
  return Object.fromEntries([...text.matchAll(LABEL)].map(([, name = '', value = '']) => [name, unescaped(value)]));
}

/** The value of the sample with these labels; undefined without one. */
export const sampleValue = (
  samples: Samples,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined =>
  samples.get(name)?.find((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
    ?.value;
