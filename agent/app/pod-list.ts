/** All pods that the API binds to this node, in pages. */
import { defined } from '../../shared/defined.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import { recordOf, recordsOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import type { KubeAnswer, KubeApi } from '../ports/kube-api.ts';
import { answeredWith, describeAnswer } from '../rules/kube-answer.ts';

const PAGE_PODS = 250;
/** At most 10,000 pods, finished ones included: far more than one machine runs. */
const PAGES_MAX = 40;

export type PodList =
  | { readonly kind: 'listed'; readonly pods: readonly KubePod[] }
  | { readonly kind: 'failed'; readonly why: string; readonly answer?: KubeAnswer };

/** Lists all pages or fails: the pods of a missing page would look deleted. */
export async function listPods(api: KubeApi, nodeName: string, stop?: AbortSignal): Promise<PodList> {
  const query = `fieldSelector=${encodeURIComponent(`spec.nodeName=${nodeName}`)}&limit=${PAGE_PODS}`;
  const pods: KubePod[] = [];
  let token = '';
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const answer = await api.send({
      method: 'GET',
      path: `/api/v1/pods?${query}${token === '' ? '' : `&continue=${encodeURIComponent(token)}`}`,
      ...defined({ signal: stop }),
    });
    if (answer.kind !== 'answered' || !answeredWith(answer, 200)) {
      return { kind: 'failed', why: describeAnswer(answer), answer };
    }
    const body = recordOf(answer.body);
    if (!Array.isArray(body['items'])) return { kind: 'failed', why: 'the answer is not a list', answer };
    for (const item of recordsOf(body['items'])) {
      const pod = { ...item, metadata: recordOf(item['metadata']) } as KubePod;
      if (textOf(pod.metadata.uid) !== '' && pod.spec?.nodeName === nodeName) pods.push(pod);
    }
    token = textOf(recordOf(body['metadata'])['continue']);
    if (token === '') return { kind: 'listed', pods };
  }
  return { kind: 'failed', why: `more than ${PAGE_PODS * PAGES_MAX} pods` };
}
