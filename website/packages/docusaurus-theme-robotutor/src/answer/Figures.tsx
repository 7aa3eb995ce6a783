import {useEffect, useState, type ReactNode} from 'react';
import {readAddress} from '../addresses';
import type {Figure, Passage} from '../service/protocol';
import {Diagram} from './Diagram';
import {findBuiltImage, isBuilt} from './builtImages';
import {useBookUrl} from './useBookUrl';
import styles from './answer.module.css';

/**
 * The images and diagrams beside a passage, except diagrams that its text contains. Nor are captions
 * and alternative texts repeated that the text contains.
 */
export function Figures({passage: {citation, figures = [], text}}: {passage: Passage}): ReactNode {
  const words = text.replace(/\s+/g, ' ');
  const once = (part: string): string => (words.includes(part) ? '' : part);
  return figures.map((figure, at) => {
    if (figure.kind !== 'diagram') {
      return <Image key={at} figure={figure} once={once} page={citation.url} />;
    }
    return text.includes(figure.text) ? null : (
      <Captioned key={at} caption={once(figure.caption)}>
        <Diagram source={figure.text} />
      </Captioned>
    );
  });
}

function Captioned({caption, children}: {caption: string; children: ReactNode}): ReactNode {
  return (
    <div className={styles.figure}>
      {children}
      {caption && <small dir="auto">{caption}</small>}
    </div>
  );
}

interface ImageProps {
  figure: Figure;
  page: string;
  /** Returns a text, or nothing if the passage contains it. */
  once: (part: string) => string;
}

/** An image of the site. Images of other hosts are never loaded. */
function Image({figure, once, page}: ImageProps): ReactNode {
  const address = useImageAddress(figure, page);
  return (
    address && (
      <Captioned caption={once(figure.caption)}>
        <img src={address} alt={once(figure.text)} loading="lazy" />
      </Captioned>
    )
  );
}

/** Returns the address of an image in the built site, or null while it is unknown. */
function useImageAddress(figure: Figure, page: string): string | null {
  const toBookUrl = useBookUrl();
  const [built, setBuilt] = useState<string | null>(null);
  const {address, kind, text} = figure;
  const isImage = kind === 'image';
  const cited = readAddress(page, window.location.origin);
  const pageUrl = isImage && isBuilt(address) && cited?.internal ? toBookUrl(cited.href) : null;
  useEffect(() => {
    let isCurrent = true;
    setBuilt(null);
    if (pageUrl !== null) {
      findBuiltImage({address, text}, pageUrl).then(
        (found) => isCurrent && setBuilt(found),
        () => undefined, // an answer is complete without its images
      );
    }
    return () => {
      isCurrent = false;
    };
  }, [address, text, pageUrl]);
  if (pageUrl !== null) {
    return built;
  }
  const direct = isImage ? readAddress(address, window.location.origin) : null;
  return direct?.internal ? toBookUrl(direct.href) : null;
}
