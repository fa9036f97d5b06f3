// The pattern of uncertainties, which every drawing refers to.

export function Hatching() {
  return (
    <svg class="definitions" width="0" height="0" aria-hidden="true">
      <defs>
        <pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <line class="hatching" x1="0.7" y1="0" x2="0.7" y2="5" stroke-width="1.3" />
          <line class="hatching gap" x1="2.1" y1="0" x2="2.1" y2="5" stroke-width="1.5" />
        </pattern>
      </defs>
    </svg>
  );
}
