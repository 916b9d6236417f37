/** The part of the Accept header that the API evaluates: which form of a JSON answer a client wants. */
export interface MediaRange {
  /** Lower case, such as application/json. */
  readonly type: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly quality: number;
}

/** Ranges beyond this many are not read. */
const RANGES_MAX = 32;

/** The ranges of an Accept header, most wanted first; an absent or empty header accepts everything. */
export function mediaRanges(accept: string | undefined): MediaRange[] {
  if (accept === undefined || accept.trim() === '') return [{ type: '*/*', parameters: {}, quality: 1 }];
  return accept
    .split(',', RANGES_MAX)
    .map((text) => {
      const [type = '', ...rest] = text.split(';').map((part) => part.trim());
      const parameters: Record<string, string> = {};
      for (const part of rest) {
        const [name = '', value = ''] = part.split('=', 2);
        parameters[name.trim().toLowerCase()] = value.trim().replace(/^"(.*)"$/, '$1');
      }
      const quality = Number(parameters['q'] ?? '1');
      return { type: type.toLowerCase(), parameters, quality: Number.isNaN(quality) ? 1 : quality };
    })
    .filter((range) => range.type !== '' && range.quality > 0)
    .sort((left, right) => right.quality - left.quality);
}

export type MetaVersion = 'v1' | 'v1beta1';

export type AnswerForm =
  | { readonly kind: 'object' }
  | { readonly kind: 'table'; readonly version: MetaVersion }
  | { readonly kind: 'partialMetadata'; readonly version: MetaVersion };

/**
 * The form of an answer. It is always JSON, also if the client asked for another type: every client that prefers
 * protobuf accepts JSON too, and a 406 would help no client.
 */
export function answerForm(accept: string | undefined): AnswerForm {
  for (const { type, parameters } of mediaRanges(accept)) {
    if (type !== 'application/json' && type !== '*/*' && type !== 'application/*') continue;
    const { as, v, g } = parameters;
    if (as === undefined) return { kind: 'object' };
    if (g !== undefined && g !== 'meta.k8s.io') continue;
    if (v !== 'v1' && v !== 'v1beta1') continue;
    if (as === 'Table') return { kind: 'table', version: v };
    if (as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList') {
      return { kind: 'partialMetadata', version: v };
    }
  }
  return { kind: 'object' };
}
