import type {ReactNode} from 'react';

/** The x and y coordinates of the joints, in units of the SVG view box. */
const JOINTS: [number, number][] = [
  [150, 170],
  [159, 100],
  [160, 232],
  [146, 286],
  [196, 222],
  [226, 270],
  [126, 140],
  [190, 126],
];

/** Drawing of a walking biped from the side, with its joints, center of mass and capture point. */
export default function WalkingFigure(): ReactNode {
  return (
    <svg
      viewBox="0 0 380 345"
      role="img"
      aria-label="A walking biped with its center of mass and its capture point marked on the ground">
      <g fill="none" stroke="currentColor" strokeLinecap="round" strokeLinejoin="round">
        <path d="M20 300H360" strokeWidth="1.5" opacity=".6" />
        <g strokeWidth="9" opacity=".45">
          <path d="M150 170 196 222 226 270 250 268" />
          <path d="M159 100 126 140 112 178" />
        </g>
        <g strokeWidth="9">
          <path d="M150 170 160 232 146 286 172 295H138L146 286" />
          <path d="M150 170 161 86" />
          <path d="M159 100 190 126 222 112" />
        </g>
      </g>
      <circle cx="164" cy="62" r="22" fill="currentColor" />
      <g fill="var(--book-paper)" stroke="currentColor" strokeWidth="2.5">
        {JOINTS.map(([x, y]) => (
          <circle key={`${x},${y}`} cx={x} cy={y} r="5.5" />
        ))}
      </g>
      <g stroke="var(--book-accent)" strokeWidth="2" fill="none">
        <path d="M155 146V300" strokeDasharray="5 5" />
        <path d="M155 146H238M229 141 238 146 229 151" />
        <path d="M155 146Q258 168 268 296" strokeDasharray="2 6" strokeLinecap="round" />
        <path d="M261 293 275 307M275 293 261 307" strokeWidth="3" />
      </g>
      <g fill="var(--book-accent)">
        <circle cx="155" cy="146" r="9" fill="var(--book-paper)" stroke="var(--book-accent)" strokeWidth="2" />
        <path d="M155 146V137A9 9 0 0 1 164 146ZM155 146V155A9 9 0 0 1 146 146Z" />
      </g>
      <g fill="var(--ifm-font-color-base)" fontSize="14" fontFamily="var(--book-sans)">
        <text x="246" y="151">
          center of mass
        </text>
        <text x="268" y="329" textAnchor="middle">
          capture point
        </text>
      </g>
    </svg>
  );
}
